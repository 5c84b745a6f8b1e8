"""fluid.incubate.fleet.base: roles, and what every fleet has."""
