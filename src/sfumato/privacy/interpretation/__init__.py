"""What a loss means in practice: the best attack, the cost of each part, curves and plots."""
