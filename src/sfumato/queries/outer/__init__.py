"""SQL around private SELECTs: it reads their answers and public tables, and costs no privacy."""
