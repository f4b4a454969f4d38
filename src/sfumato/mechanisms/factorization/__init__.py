"""Linear queries whose noise is planned as a whole: correlated over steps, or spread over a workload."""
