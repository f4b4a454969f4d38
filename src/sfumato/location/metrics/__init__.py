"""Distances between places: a plane with its distortion, the ellipsoid, roads, elastic metrics, spanners."""
