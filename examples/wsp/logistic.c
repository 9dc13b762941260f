/* Logistic regression by stochastic gradient descent, wave-synchronously: every rank has its own
 * samples and may be D waves ahead of the slowest one.
 *
 *     mpicc logistic.c $(pkg-config --cflags --libs hetcoll_wsp) -lm -o logistic
 *     mpirun -n 4 ./logistic 2                            # D = 2
 *     mpirun -n 4 ./logistic 2 jitter                     # and some steps take longer than others
 *
 * With -DWITH_CUDA and -lcuda weights and updates are in GPU memory, for mpirun --mca coll hetcoll.
 */
#include <hetcoll_wsp.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#ifdef WITH_CUDA
#include <cuda.h>
#endif

enum { kFeatures = 60, kSamples = 2000, kBatch = 20, kSteps = 1500, kStepsPerWave = 2 };

static double features[kSamples][kFeatures];
static int labels[kSamples];

/* The same numbers everywhere, whatever the C library. */
static unsigned long long state;
static double uniform(void) /* between 0 and 1, never 0 */
{
    state = state * 6364136223846793005ull + 1442695040888963407ull;
    return ((double)(state >> 33) + 1) / 2147483649.0;
}
static double normal(void)
{
    return sqrt(-2 * log(uniform())) * cos(6.283185307179586 * uniform());
}

static void make_samples(int rank)
{
    double truth[kFeatures];
    state = 1; /* all ranks know the same truth, */
    for (int i = 0; i < kFeatures; i++)
        truth[i] = normal() / 4;
    state = 1000 + (unsigned)rank; /* and each has samples of its own */
    for (int s = 0; s < kSamples; s++) {
        double score = 0;
        for (int i = 0; i < kFeatures; i++) {
            features[s][i] = normal();
            score += truth[i] * features[s][i];
        }
        labels[s] = uniform() < 1 / (1 + exp(-score)); /* not separable: the loss stays above 0 */
    }
}

static double predict(const double *weights, int sample)
{
    double score = 0;
    for (int i = 0; i < kFeatures; i++)
        score += weights[i] * features[sample][i];
    return 1 / (1 + exp(-score));
}

/* This rank's addition to the weights: its part of the mean over the ranks. */
static void compute_update(const double *weights, double *update, double rate, int ranks)
{
    memset(update, 0, kFeatures * sizeof *update);
    for (int b = 0; b < kBatch; b++) {
        const int sample = (int)(uniform() * kSamples) % kSamples;
        const double wrong = predict(weights, sample) - labels[sample];
        for (int i = 0; i < kFeatures; i++)
            update[i] -= rate * wrong * features[sample][i] / kBatch / ranks;
    }
}

static double mean_loss(const double *weights, int ranks)
{
    double loss = 0, all = 0;
    for (int s = 0; s < kSamples; s++) {
        const double guess = predict(weights, s);
        loss -= log(labels[s] ? guess : 1 - guess) / kSamples / ranks;
    }
    MPI_Allreduce(&loss, &all, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    return all;
}

static void check(int code, const char *what)
{
    if (code != 0) {
        fprintf(stderr, "%s failed with %d: %s\n", what, code, hetcoll_wsp_error_message());
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
}

/* Memory of the weights and the update: the GPU's or the host's. */
#ifdef WITH_CUDA
static void *make_vector(void)
{
    CUdeviceptr vector;
    check(cuMemAlloc(&vector, kFeatures * sizeof(double)), "cuMemAlloc");
    check(cuMemsetD8(vector, 0, kFeatures * sizeof(double)), "cuMemsetD8");
    return (void *)vector;
}
static void put(void *to, const double *from)
{
    check(cuMemcpyHtoD((CUdeviceptr)to, from, kFeatures * sizeof *from), "cuMemcpyHtoD");
}
static void get(double *to, const void *from)
{
    check(cuMemcpyDtoH(to, (CUdeviceptr)from, kFeatures * sizeof *to), "cuMemcpyDtoH");
}
static void open_gpu(void)
{
    CUdevice device;
    CUcontext context;
    check(cuInit(0), "cuInit");
    check(cuDeviceGet(&device, 0), "cuDeviceGet");
    check(cuDevicePrimaryCtxRetain(&context, device), "cuDevicePrimaryCtxRetain");
    check(cuCtxSetCurrent(context), "cuCtxSetCurrent");
}
static void free_vector(void *vector) { check(cuMemFree((CUdeviceptr)vector), "cuMemFree"); }
static void close_gpu(void)
{
    check(cuCtxSetCurrent(NULL), "cuCtxSetCurrent");
    check(cuDevicePrimaryCtxRelease(0), "cuDevicePrimaryCtxRelease");
}
#else
static void *make_vector(void) { return calloc(kFeatures, sizeof(double)); }
static void put(void *to, const double *from) { memcpy(to, from, kFeatures * sizeof *from); }
static void get(double *to, const void *from) { memcpy(to, from, kFeatures * sizeof *to); }
static void open_gpu(void) {}
static void free_vector(void *vector) { free(vector); }
static void close_gpu(void) {}
#endif

int main(int argc, char **argv)
{
    int level, rank, ranks;
    double weights[kFeatures], update[kFeatures];
    struct hetcoll_wsp_options options = HETCOLL_WSP_OPTIONS;
    struct hetcoll_wsp_statistics statistics;
    hetcoll_wsp *wsp;
    const int jitter = argc > 2 && strcmp(argv[2], "jitter") == 0;

    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &level);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    make_samples(rank);
    open_gpu();
    void *const library_weights = make_vector(), *const library_update = make_vector();

    options.distance = argc > 1 ? atoi(argv[1]) : 1;
    options.steps_per_wave = kStepsPerWave;
    options.progress_us = level == MPI_THREAD_MULTIPLE ? 500 : 0;
    check(hetcoll_wsp_create(MPI_COMM_WORLD, library_weights, kFeatures, HETCOLL_WSP_DOUBLE,
                             &options, &wsp),
          "create");
    for (int step = 0; step < kSteps; step++) {
        const double rate = 0.5 / (1 + step / 150.0);
        get(weights, library_weights);
        compute_update(weights, update, rate, ranks);
        if (jitter && uniform() < 0.05)
            usleep((useconds_t)(uniform() * 5000));
        put(library_update, update);
        check(hetcoll_wsp_step(wsp, library_update), "step");
    }
    check(hetcoll_wsp_flush(wsp), "flush");
    get(weights, library_weights);
    const double loss = mean_loss(weights, ranks);
    check(hetcoll_wsp_get_statistics(wsp, &statistics), "statistics");
    if (rank == 0)
        printf("loss %.6f, distance %d, steps behind %llu of %llu, waited %.0f ms\n", loss,
               options.distance, (unsigned long long)statistics.max_staleness,
               (unsigned long long)statistics.staleness_bound, statistics.blocked_ms);
    check(hetcoll_wsp_free(&wsp), "free");
    free_vector(library_weights);
    free_vector(library_update);
    close_gpu();
    return MPI_Finalize();
}
