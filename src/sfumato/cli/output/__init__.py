"""Where answers go: formats, tables, pages, and which files are never written over."""
