"""Inference: attributes, links and isolated persons from synthetic tables and models; memorised canaries."""
