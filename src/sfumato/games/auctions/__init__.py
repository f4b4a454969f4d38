"""Auctions: private prices, what they earn, and the optimum and VCG beside them."""
