# SPDX-License-Identifier: Apache-2.0
"""fluid.incubate.fleet.base: roles, and what every fleet has."""
