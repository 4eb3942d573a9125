"""Models of the parts that students write: configurations, building, files."""
