unit_sources_transport =
