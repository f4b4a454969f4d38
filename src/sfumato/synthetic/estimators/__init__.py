"""A generator with the interface of scikit-learn."""
