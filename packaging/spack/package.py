# SPDX-License-Identifier: BSD-3-Clause

from spack_repo.builtin.build_systems.autotools import AutotoolsPackage
from spack_repo.builtin.build_systems.cuda import CudaPackage

from spack.package import *


class Hetcoll(AutotoolsPackage, CudaPackage):
    """Collective component for Open MPI that reduces CUDA device buffers on the GPU."""

    homepage = "https://example.org/hetcoll"
    url = "https://example.org/hetcoll/releases/hetcoll-0.2.0.tar.xz"

    license("BSD-3-Clause")

    version("0.2.0", sha256="0" * 64)  # of the archive that make dist makes

    variant("aggregators", default=True, description="Reduction servers")
    variant(
        "rdma", default=True, when="+aggregators", description="RDMA to reduction servers, by UCX"
    )
    variant("tools", default=True, description="hetcoll_bench, _info, _tune, _place, _aggregator")
    variant("simulator", default=False, when="+tools", description="hetcoll_sim, by SimGrid")

    depends_on("c", type="build")
    depends_on("cxx", type="build")
    depends_on("gmake", type="build")
    depends_on("pkgconfig", type="build")

    # One build is for one release of Open MPI, which concretization pins by hash.
    depends_on("openmpi@=4.1.4,=5.0.7", type=("build", "link", "run"))
    depends_on("pmix", when="^openmpi@5:~internal-pmix")
    depends_on("hwloc@2.1:")
    depends_on("cuda@12:", when="+cuda", type="build")
    depends_on("openssl@1.1.1:", when="+aggregators")
    depends_on("ucx@1.11:", when="+rdma")
    depends_on("cli11", when="+tools", type="build")
    depends_on("nlohmann-json", when="+tools", type="build")
    depends_on("help2man", when="+tools", type="build")
    depends_on("simgrid@3.32:4", when="+simulator")  # tried: 3.32, 4.0, 4.1

    conflicts("~cuda", msg="without CUDA hetcoll leaves every communicator to the others")
    conflicts("cuda_arch=none", when="+cuda", msg="name the GPUs: cuda_arch=80,90")

    # Spack's openmpi has no internal headers: they come from its source, which is configured and
    # not built. These are the releases above, with the sums of Spack's own openmpi package.
    for _release, _sum in (
        ("4.1.4", "92912e175fd1234368c8730c03f4996fe5942e7479bb1d10059405e7f2b3930d"),
        ("5.0.7", "119f2009936a403334d0df3c0d74d5595a32d99497f9b1d41e90019fee2fc2dd"),
    ):
        resource(
            name="openmpi-source",
            url=f"https://download.open-mpi.org/release/open-mpi/v{_release[:3]}/openmpi-{_release}.tar.bz2",
            sha256=_sum,
            destination="openmpi-source",
            placement="openmpi-source",
            when=f"^openmpi@{_release}",
        )

    @property
    def component_dir(self):
        return join_path(self.prefix.lib, "openmpi")

    def configure_args(self):
        spec = self.spec
        args = [
            f"--with-ompi={spec['openmpi'].prefix}",
            f"--with-ompi-source={join_path(self.stage.source_path, 'openmpi-source')}",
            f"--with-componentdir={self.component_dir}",
            "--disable-tune",  # the machine that builds is not the one that runs
            "--with-systemdsystemunitdir=no",
        ]
        args += self.with_or_without(
            "openssl", variant="aggregators", activation_value=lambda _: spec["openssl"].prefix
        )
        args += self.with_or_without(
            "ucx", variant="rdma", activation_value=lambda _: spec["ucx"].prefix
        )
        args.append(f"--with-cuda={spec['cuda'].prefix}")
        args.append("--with-cuda-arch=" + ",".join(spec.variants["cuda_arch"].value))
        return args

    def setup_run_environment(self, env):
        # set, not prepend: Open MPI's own folder has to be named too, or it finds nothing of its
        # own. From 5.0 on mpirun hands the variable on to PMIx, which complains of what it finds
        # there and does not know the word SYSTEM_DEFAULT: so PMIx is told its own folder.
        openmpi = self.spec["openmpi"].prefix
        env.set("OMPI_MCA_mca_base_component_path", f"{self.component_dir}:{openmpi.lib.openmpi}")
        if self.spec.satisfies("^openmpi@5:~internal-pmix"):
            env.set("PMIX_MCA_mca_base_component_path", self.spec["pmix"].prefix.lib.pmix)

    def setup_dependent_run_environment(self, env, dependent_spec):
        self.setup_run_environment(env)

    def test_component(self):
        """Open MPI lists the component."""
        ompi_info = which(self.spec["openmpi"].prefix.bin.ompi_info)
        out = ompi_info(
            "--param", "coll", "hetcoll", "--level", "9", output=str.split, error=str.split
        )
        assert "coll_hetcoll_priority" in out
