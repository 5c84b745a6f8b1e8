"""fluid.incubate.fleet.parameter_server: trainers and parameter servers."""
