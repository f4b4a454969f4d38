"""What a loss means: the best attack against it, which step costs what, and pictures of both."""
