"""Questions that are answered by a number: designs, the mean and the distribution, numbers of respondents."""
