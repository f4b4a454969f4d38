"""Classical models with scikit-learn's manners, from sums with exact noise; scikit-learn is an extra."""
