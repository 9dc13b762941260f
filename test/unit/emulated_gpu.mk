unit_sources_emulated_gpu =
