"""fluid.incubate.fleet: one script for servers, trainers and one machine."""
