"""The benchmark suite: selection of rows, contenders, measurement."""
