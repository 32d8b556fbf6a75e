/* file FILE MIB_EACH [STRIDE_MIB]: concurrent access to one file, after
 * pvfs-test (Balaji et al. 2006, section 6.2.2).
 *
 * All processes at once write buffers of 2 MB (2 MiB here) one after the other,
 * each into its own region of one file, MIB_EACH MiB in all for each process;
 * then all at once read the region that the next process wrote. Regions begin
 * STRIDE_MIB apart (default 64, a chunk of MooseFS: each region is then on one
 * server, and the regions are on different servers in turn), so the file may
 * have holes. The time of writing includes fsync. Rank 0 prints one line of
 * JSON; the exit status is not 0 if a byte is wrong. */
#include "common.h"
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

enum { BUFFER = 2 << 20 };

int main(int argc, char **argv)
{
    int rank, ranks;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    if (argc != 3 && argc != 4)
        stop("usage", "file FILE MIB_EACH [STRIDE_MIB]");
    size_t bytes = (size_t)number_of(argv[2], "MIB_EACH") << 20;
    uint64_t stride = (uint64_t)number_of(argc == 4 ? argv[3] : "64", "STRIDE_MIB") << 20;
    if (bytes == 0 || bytes % BUFFER || stride < bytes)
        stop("usage", "MIB_EACH must be even and not more than STRIDE_MIB");
    unsigned char *buffer = memory(bytes);

    double seconds[2];
    uint64_t wrong = 0;
    for (int reading = 0; reading < 2; reading++) {
        uint64_t offset = stride * (reading ? (rank + 1) % ranks : rank);
        if (reading)
            memset(buffer, 0, bytes);
        else
            fill(buffer, bytes, offset / 8, 0);

        /* Rank 0 makes the file, the others open it afterwards. */
        if (rank)
            together();
        int mode = reading ? O_RDONLY : rank ? O_RDWR : O_RDWR | O_CREAT | O_TRUNC;
        int fd = open(argv[1], mode, 0666);
        if (fd < 0)
            stop(argv[1], strerror(errno));
        if (!rank)
            together();

        double since = start();
        for (size_t done = 0; done < bytes;) {
            size_t want = BUFFER - done % BUFFER; /* less than a buffer after a short count */
            ssize_t n = reading ? pread(fd, buffer + done, want, offset + done)
                                : pwrite(fd, buffer + done, want, offset + done);
            if (n < 0 && errno == EINTR)
                continue;
            if (n <= 0)
                stop(reading ? "read" : "write", n ? strerror(errno) : "end of file");
            done += n;
        }
        if (!reading && fsync(fd))
            stop("fsync", strerror(errno));
        seconds[reading] = slowest(since);
        if (close(fd))
            stop("close", strerror(errno));
        if (reading)
            wrong = wrong_bytes(buffer, bytes, offset / 8, 0);
        together();
    }
    wrong = total(wrong);

    if (rank == 0) {
        uint64_t all = (uint64_t)bytes * ranks;
        printf("{\"program\":\"file\",\"ranks\":%d,\"buffer_bytes\":%d,\"bytes\":%llu,"
               "\"write_s\":%.6f,\"read_s\":%.6f,\"write_mb_s\":%.3f,\"read_mb_s\":%.3f,"
               "\"verified_bytes\":%llu,\"wrong_bytes\":%llu}\n",
               ranks, BUFFER, (unsigned long long)all, seconds[0], seconds[1],
               all / 1e6 / seconds[0], all / 1e6 / seconds[1],
               (unsigned long long)(all - wrong), (unsigned long long)wrong);
        fflush(stdout);
    }
    free(buffer);
    MPI_Finalize();
    return wrong != 0;
}
