/* mpi TEST[,TEST...] REPEATS SIZE...: what MPI itself reaches, for message sizes
 * in bytes.
 *
 *   latency    the first and the last rank send one message to and fro; half of
 *              the mean round trip
 *   bandwidth  the first rank sends windows of 64 messages to the last rank,
 *              which answers each window
 *   alltoall   every rank sends SIZE bytes to every other rank; mean time
 *   allreduce  a sum over SIZE bytes of 64-bit numbers of all ranks; mean time
 *
 * REPEATS is the number of round trips, windows or calls; a tenth more go before
 * as a warm-up. Receive buffers are cleared after the warm-up and compared at the
 * end with what they must hold. Rank 0 prints one line of JSON; the exit status is not 0 if a
 * result is wrong. */
#include "common.h"

enum { WINDOW = 64 };

static int rank, ranks, last;
static uint64_t checked, wrong;

/* Compares what was received with what the sender `number` filled in. */
static void compare(const void *buffer, size_t bytes, uint64_t place, uint64_t number)
{
    checked += bytes;
    wrong += wrong_bytes(buffer, bytes, place, number);
}

static double latency(int bytes, long repeats)
{
    char *out = memory(bytes), *in = memory(bytes);
    double since = 0;
    fill(out, bytes, 0, rank);
    MPI_Barrier(MPI_COMM_WORLD);
    for (long i = -(repeats / 10 + 1); i < repeats && (rank == 0 || rank == last); i++) {
        if (i == 0) {
            memset(in, 0, bytes);
            since = MPI_Wtime();
        }
        if (rank == 0)
            MPI_Send(out, bytes, MPI_BYTE, last, 0, MPI_COMM_WORLD);
        MPI_Recv(in, bytes, MPI_BYTE, last - rank, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        if (rank == last)
            MPI_Send(out, bytes, MPI_BYTE, 0, 0, MPI_COMM_WORLD);
    }
    double seconds = MPI_Wtime() - since;
    if (rank == 0 || rank == last)
        compare(in, bytes, 0, last - rank);
    free(out);
    free(in);
    return seconds / repeats / 2;
}

/* The time of one message. */
static double bandwidth(int bytes, long repeats)
{
    MPI_Request request[WINDOW];
    char *buffer = memory((size_t)bytes * WINDOW), answer = 0;
    double since = 0;
    if (rank == 0)
        fill(buffer, (size_t)bytes * WINDOW, 0, 0);
    MPI_Barrier(MPI_COMM_WORLD);
    for (long i = -(repeats / 10 + 1); i < repeats && (rank == 0 || rank == last); i++) {
        if (i == 0) {
            if (rank == last)
                memset(buffer, 0, (size_t)bytes * WINDOW);
            since = MPI_Wtime();
        }
        for (int k = 0; k < WINDOW; k++) {
            char *part = buffer + (size_t)bytes * k;
            if (rank == 0)
                MPI_Isend(part, bytes, MPI_BYTE, last, 1, MPI_COMM_WORLD, &request[k]);
            else
                MPI_Irecv(part, bytes, MPI_BYTE, 0, 1, MPI_COMM_WORLD, &request[k]);
        }
        MPI_Waitall(WINDOW, request, MPI_STATUSES_IGNORE);
        if (rank == 0)
            MPI_Recv(&answer, 1, MPI_BYTE, last, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        else
            MPI_Send(&answer, 1, MPI_BYTE, 0, 2, MPI_COMM_WORLD);
    }
    double seconds = MPI_Wtime() - since;
    if (rank == last)
        compare(buffer, (size_t)bytes * WINDOW, 0, 0);
    free(buffer);
    return seconds / repeats / WINDOW;
}

static double alltoall(int bytes, long repeats)
{
    char *out = memory((size_t)bytes * ranks), *in = memory((size_t)bytes * ranks);
    double since = 0;
    for (int to = 0; to < ranks; to++)
        fill(out + (size_t)bytes * to, bytes, to, rank);
    for (long i = -(repeats / 10 + 1); i < repeats; i++) {
        if (i == 0) {
            memset(in, 0, (size_t)bytes * ranks);
            MPI_Barrier(MPI_COMM_WORLD);
            since = MPI_Wtime();
        }
        MPI_Alltoall(out, bytes, MPI_BYTE, in, bytes, MPI_BYTE, MPI_COMM_WORLD);
    }
    double seconds = slowest(since);
    for (int from = 0; from < ranks; from++)
        compare(in + (size_t)bytes * from, bytes, rank, from);
    free(out);
    free(in);
    return seconds / repeats;
}

static double allreduce(int bytes, long repeats)
{
    int count = bytes / 8;
    uint64_t *out = memory(bytes), *in = memory(bytes);
    double since = 0;
    for (int i = 0; i < count; i++)
        out[i] = word_at(i, rank);
    for (long i = -(repeats / 10 + 1); i < repeats; i++) {
        if (i == 0) {
            memset(in, 0, bytes);
            MPI_Barrier(MPI_COMM_WORLD);
            since = MPI_Wtime();
        }
        MPI_Allreduce(out, in, count, MPI_UINT64_T, MPI_SUM, MPI_COMM_WORLD);
    }
    double seconds = slowest(since);
    for (int i = 0; i < count; i++) {
        uint64_t sum = 0; /* wraps around, as that of MPI does */
        for (int r = 0; r < ranks; r++)
            sum += word_at(i, r);
        checked += 8;
        wrong += in[i] == sum ? 0 : 8;
    }
    free(out);
    free(in);
    return seconds / repeats;
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        double (*run)(int, long);
    } known[] = {{"latency", latency}, {"bandwidth", bandwidth},
                 {"alltoall", alltoall}, {"allreduce", allreduce}};
    const char *comma = "";

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    last = ranks - 1;
    if (argc < 4)
        stop("usage", "mpi TEST[,TEST...] REPEATS SIZE...");
    if (ranks < 2)
        stop("mpi", "two ranks at least");
    long repeats = number_of(argv[2], "REPEATS");
    if (repeats == 0)
        stop("REPEATS", "one at least");

    if (rank == 0)
        printf("{\"program\":\"mpi\",\"ranks\":%d,\"repeats\":%ld,\"results\":[", ranks, repeats);
    for (char *test = strtok(argv[1], ","); test; test = strtok(NULL, ",")) {
        double (*run)(int, long) = NULL;
        for (size_t k = 0; k < sizeof known / sizeof *known; k++)
            if (strcmp(test, known[k].name) == 0)
                run = known[k].run;
        if (!run)
            stop(test, "no such test");
        for (int a = 3; a < argc; a++) {
            long bytes = number_of(argv[a], "SIZE");
            if (bytes < 1 || bytes > 64 << 20 || (run == allreduce && bytes % 8))
                stop("SIZE", "from 1 byte to 64 MiB, for allreduce a multiple of 8");
            double seconds = run((int)bytes, repeats);
            if (rank == 0)
                printf("%s{\"test\":\"%s\",\"bytes\":%ld,\"us\":%.3f,\"mb_s\":%.3f}", comma,
                       test, bytes, seconds * 1e6, bytes / 1e6 / seconds);
            comma = ",";
        }
    }
    checked = total(checked);
    wrong = total(wrong);
    if (rank == 0)
        printf("],\"verified_bytes\":%llu,\"wrong_bytes\":%llu}\n",
               (unsigned long long)(checked - wrong), (unsigned long long)wrong);
    fflush(stdout);
    MPI_Finalize();
    return wrong != 0;
}
