# Horovod's extension for PyTorch, with MPI and CUDA: the sources and options of its CMakeLists.txt. Makes a.so, which
# hands device pointers to MPI, and b.so, which copies CUDA tensors to the host. horovod_extension.sh runs this in an
# empty folder and sets SOURCE (Horovod's), TORCH, TORCH_NUMBER, PYTHON_INCLUDE, CUDA, CUDA_ARCH and MPICXX.
all: a.so b.so
.PHONY: all
.DELETE_ON_ERROR:

common = common controller fusion_buffer_manager group_table half logging message operations parameter_manager \
	process_set response_cache stall_inspector thread_pool timeline tensor_queue \
	ops/collective_operations ops/operation_manager optim/bayesian_optimization optim/gaussian_process utils/env_parser \
	mpi/mpi_context mpi/mpi_controller ops/mpi_operations ops/adasum/adasum_mpi ops/adasum_mpi_operations \
	ops/cuda_operations ops/gpu_operations ops/mpi_gpu_operations ops/cuda/cuda_kernels
torch = handle_manager ready_event cuda_util adapter_v2 mpi_ops_v2
# These alone differ between a.so and b.so.
differ = common/operations torch/mpi_ops_v2
same = $(filter-out $(differ),$(addprefix common/,$(common)) $(addprefix torch/,$(torch)))
device_pointers = $(foreach call,ALLREDUCE ALLGATHER BROADCAST ALLTOALL REDUCESCATTER,-DHOROVOD_GPU_$(call)="'M'")

third_party = $(SOURCE)/third_party
# Horovod uses MPI's C functions alone, so it is not linked with libmpi_cxx, which machines may lack.
compile = g++ -std=c++17 -O2 -fPIC -pthread -w $(if $(filter x86_64,$(shell uname -m)),-mf16c -mavx -mfma) \
	-DHAVE_MPI=1 -DHAVE_CUDA=1 -DHAVE_GPU=1 -DEIGEN_MPL2_ONLY=1 -DOMPI_SKIP_MPICXX=1 \
	-DPYTORCH_VERSION=$(TORCH_NUMBER) -DTORCH_API_INCLUDE_EXTENSION_H=1 -DTORCH_EXTENSION_NAME=mpi_lib_v2 \
	-I$(SOURCE) -I$(third_party)/eigen \
	$(addprefix -I,$(wildcard $(third_party)/*/include $(third_party)/boost/*/include)) \
	$(shell $(MPICXX) --showme:compile) -isystem $(CUDA)/include \
	-isystem $(TORCH)/include -isystem $(TORCH)/include/torch/csrc/api/include -isystem $(PYTHON_INCLUDE)
gencode = $(foreach arch,$(CUDA_ARCH),-gencode arch=compute_$(arch),code=sm_$(arch)) \
	-gencode arch=compute_$(lastword $(CUDA_ARCH)),code=compute_$(lastword $(CUDA_ARCH))

a/%.o: $(SOURCE)/horovod/%.cc
	mkdir -p $(@D) && $(compile) $(device_pointers) -c -o $@ $<
b/%.o: $(SOURCE)/horovod/%.cc
	mkdir -p $(@D) && $(compile) -c -o $@ $<
b/%.o: $(SOURCE)/horovod/%.cu
	mkdir -p $(@D) && $(CUDA)/bin/nvcc -std=c++17 -O3 -Xcompiler -fPIC $(gencode) -I$(SOURCE) -c -o $@ $<

a.so: $(differ:%=a/%.o)
b.so: $(differ:%=b/%.o)
a.so b.so: $(same:%=b/%.o)
	g++ -shared -s -o $@ $^ -Wl,--version-script=$(SOURCE)/horovod.lds -Wl,-Bsymbolic-functions -Wl,-z,relro,-z,now \
		-L$(TORCH)/lib -ltorch -ltorch_cpu -ltorch_cuda -ltorch_python -lc10 -lc10_cuda \
		$(addprefix -L,$(shell $(MPICXX) --showme:libdirs)) -lmpi \
		-L$(CUDA)/lib64 -L$(CUDA)/lib -lcudart_static -ldl -lrt -lpthread
