unit_sources_base =
