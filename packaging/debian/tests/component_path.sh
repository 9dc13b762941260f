# Read by the tests. Debian 13's PMIx takes Open MPI's folder of components away: docs/install.md.
# shellcheck shell=sh
pmix=$(sed -n 's/^ *mca_base_component_path *= *//p' /usr/lib/*/pmix2/share/pmix-mca-params.conf 2>/dev/null || :)
if [ -n "$pmix" ]; then
    OMPI_MCA_mca_base_component_path=$(ompi_info --path pkglibdir | sed 's/^[^:]*: *//')
    PMIX_MCA_mca_base_component_path=$pmix
    export OMPI_MCA_mca_base_component_path PMIX_MCA_mca_base_component_path
fi
