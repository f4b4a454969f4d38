"""What an adversary learns from reports, and what they are still worth."""
