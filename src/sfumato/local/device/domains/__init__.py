"""What may be true: categories, bins of numbers, pairs, strings, and trees over ordered values."""
