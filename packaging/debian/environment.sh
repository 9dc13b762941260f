# To be read by the shell that starts mpirun: . /usr/share/hetcoll/environment.sh
# From Open MPI 5.0 on, what Debian's PMIx sets for itself takes Open MPI's folder of components, where hetcoll is, away
# from ranks. This names both folders; in Debian 12, and where the variables are set already, it changes nothing.
# shellcheck shell=sh
hetcoll_pmix=$(sed -n 's/^ *mca_base_component_path *= *//p' /usr/lib/*/pmix2/share/pmix-mca-params.conf 2>/dev/null || :)
case $(ompi_info --version 2>/dev/null || :) in '' | *' v4.'*) hetcoll_pmix= ;; esac
if [ -n "$hetcoll_pmix" ]; then
    : "${OMPI_MCA_mca_base_component_path:=$(ompi_info --path pkglibdir | sed 's/^[^:]*: *//')}"
    : "${PMIX_MCA_mca_base_component_path:=$hetcoll_pmix}"
    export OMPI_MCA_mca_base_component_path PMIX_MCA_mca_base_component_path
fi
unset hetcoll_pmix
