"""fluid.incubate: fleet and data generators."""
