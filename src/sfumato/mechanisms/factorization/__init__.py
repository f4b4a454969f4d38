"""Matrix mechanisms: correlated noise for sums over a stream, and for workloads of linear queries."""
