/* tile FILE DISPLAYS ACCESS [OFFSET_MIB]: MPI-Tile-IO, after Balaji et al. (2006),
 * section 6.2.2.
 *
 * A file holds a picture made of displays side by side, each of 1024 x 768
 * pixels of 32 bytes, row after row: the part of a row that belongs to one
 * display is 32 KiB, and the next row of the same display comes one whole row
 * of the picture later. Each process writes its own displays, then reads those
 * of the next process, through a file view.
 *
 * The paper says that each process renders an array of 1 x 2 displays, and that
 * the file is 48 MB. With two processes these contradict each other:
 *   one    one display for each process: two processes, 1 x 2 displays in all,
 *          48 MiB;
 *   array  an array of 1 x 2 displays for each process: two processes, 96 MiB.
 * The picture starts OFFSET_MIB MiB (default 0) after the start of the file: on
 * MooseFS, which puts each 64 MiB of a file on one server, 40 (one) or 16
 * (array) make two servers hold one half each.
 * ACCESS is `collective` (MPI_File_write_at_all), `independent`
 * (MPI_File_write_at), or `contiguous`: independent too, but the parts of the
 * processes lie one after the other, each in one piece. Rank 0 prints one line of JSON; the exit status is not 0
 * if a byte is wrong. */
#include "common.h"

#define USAGE "tile FILE one|array collective|independent|contiguous [OFFSET_MIB]"

enum { WIDTH = 1024, HEIGHT = 768, ELEMENT = 32 };

/* Which row of a part, counted through the whole file, row y of `part` is. */
static uint64_t place(int contiguous, int ranks, int part, int y)
{
    return contiguous ? (uint64_t)part * HEIGHT + y : (uint64_t)y * ranks + part;
}

int main(int argc, char **argv)
{
    int rank, ranks;
    MPI_File file;
    MPI_Datatype pixel, view;
    MPI_Status status;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    if (argc != 4 && argc != 5)
        stop("usage", USAGE);
    const char *name = argv[1];
    int array = strcmp(argv[2], "array") == 0;
    int collective = strcmp(argv[3], "collective") == 0;
    int contiguous = strcmp(argv[3], "contiguous") == 0;
    if (!array && strcmp(argv[2], "one"))
        stop("usage", USAGE);
    if (!collective && !contiguous && strcmp(argv[3], "independent"))
        stop("usage", USAGE);
    MPI_Offset offset = (MPI_Offset)number_of(argc == 5 ? argv[4] : "0", "OFFSET_MIB") << 20;

    int width = array ? 2 * WIDTH : WIDTH; /* pixels of one process in a row */
    int pixels = width * HEIGHT;
    size_t bytes = (size_t)pixels * ELEMENT;
    uint64_t file_bytes = (uint64_t)bytes * ranks;
    unsigned char *buffer = memory(bytes);

    MPI_Type_contiguous(ELEMENT, MPI_BYTE, &pixel);
    MPI_Type_commit(&pixel);

    /* A file that is left from before would hide bytes that are not written. */
    if (rank == 0)
        MPI_File_delete(name, MPI_INFO_NULL);
    together();

    double seconds[2];
    uint64_t wrong = 0;
    for (int reading = 0; reading < 2; reading++) {
        /* Reading the part of another process asks for bytes that came over
         * the file system, not out of one's own memory. */
        int part = reading ? (rank + 1) % ranks : rank;
        int own[2] = {HEIGHT, width};
        int sizes[2] = {contiguous ? ranks * HEIGHT : HEIGHT, contiguous ? width : ranks * width};
        int from[2] = {contiguous ? part * HEIGHT : 0, contiguous ? 0 : part * width};
        MPI_Type_create_subarray(2, sizes, own, from, MPI_ORDER_C, pixel, &view);
        MPI_Type_commit(&view);

        /* What the process has in row y starts at this word of the file. */
        for (int y = 0; y < HEIGHT && !reading; y++)
            fill(buffer + (size_t)y * width * ELEMENT, (size_t)width * ELEMENT,
                 place(contiguous, ranks, part, y) * width * ELEMENT / 8, 0);
        if (reading)
            memset(buffer, 0, bytes);

        int mode = reading ? MPI_MODE_RDONLY : MPI_MODE_CREATE | MPI_MODE_WRONLY;
        check(MPI_File_open(MPI_COMM_WORLD, name, mode, MPI_INFO_NULL, &file), "MPI_File_open");
        check(MPI_File_set_view(file, offset, pixel, view, "native", MPI_INFO_NULL),
              "MPI_File_set_view");
        double since = start();
        if (reading && collective)
            check(MPI_File_read_at_all(file, 0, buffer, pixels, pixel, &status), "read_at_all");
        else if (reading)
            check(MPI_File_read_at(file, 0, buffer, pixels, pixel, &status), "read_at");
        else if (collective)
            check(MPI_File_write_at_all(file, 0, buffer, pixels, pixel, &status), "write_at_all");
        else
            check(MPI_File_write_at(file, 0, buffer, pixels, pixel, &status), "write_at");
        if (!reading)
            check(MPI_File_sync(file), "MPI_File_sync"); /* counts: data must have arrived */
        seconds[reading] = slowest(since);
        check(MPI_File_close(&file), "MPI_File_close");
        MPI_Type_free(&view);

        for (int y = 0; y < HEIGHT && reading; y++)
            wrong += wrong_bytes(buffer + (size_t)y * width * ELEMENT, (size_t)width * ELEMENT,
                                 place(contiguous, ranks, part, y) * width * ELEMENT / 8, 0);
        together();
    }
    wrong = total(wrong);

    if (rank == 0)
        printf("{\"program\":\"tile\",\"ranks\":%d,\"displays\":\"1 x %d %s\",\"access\":\"%s\","
               "\"file_bytes\":%llu,\"piece_bytes\":%d,\"write_s\":%.6f,\"read_s\":%.6f,"
               "\"write_mb_s\":%.3f,\"read_mb_s\":%.3f,\"verified_bytes\":%llu,"
               "\"wrong_bytes\":%llu}\n",
               ranks, array ? 2 : ranks, array ? "for each process" : "in all", argv[3],
               (unsigned long long)file_bytes, width * ELEMENT,
               seconds[0], seconds[1], file_bytes / 1e6 / seconds[0],
               file_bytes / 1e6 / seconds[1], (unsigned long long)(file_bytes - wrong),
               (unsigned long long)wrong);
    fflush(stdout);
    free(buffer);
    MPI_Type_free(&pixel);
    MPI_Finalize();
    return wrong != 0;
}
