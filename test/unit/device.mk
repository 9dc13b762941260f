unit_sources_device =
