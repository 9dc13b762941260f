unit_sources_topology =
