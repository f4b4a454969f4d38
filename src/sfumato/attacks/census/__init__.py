"""The census way: from published tables to an integer program, and from that to the people behind them."""
