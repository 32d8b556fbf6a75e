/* Shared by the MPI programs: the contents of buffers and files, checks of
 * return codes, and times. Every 8-byte word depends on its place (and on a
 * number that tells one run or message from another), so bytes that are lost,
 * stale or in the wrong place are found out. */
#ifndef COMMON_H
#define COMMON_H

#define _GNU_SOURCE

#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static inline uint64_t word_at(uint64_t place, uint64_t number)
{
    uint64_t x = (place + 1) * 0x9E3779B97F4A7C15u ^ (number + 1) * 0xC2B2AE3D27D4EB4Fu;
    x ^= x >> 29;
    x *= 0xBF58476D1CE4E5B9u;
    return x ^ x >> 32;
}

/* Fills `bytes` bytes whose first word has place `place` (counted in words). */
static inline void fill(void *buffer, size_t bytes, uint64_t place, uint64_t number)
{
    unsigned char *b = buffer;
    for (size_t i = 0; i < bytes; i += 8) {
        uint64_t w = word_at(place + i / 8, number);
        memcpy(b + i, &w, bytes - i < 8 ? bytes - i : 8);
    }
}

/* The number of bytes that are not what `fill` writes. */
static inline uint64_t wrong_bytes(const void *buffer, size_t bytes, uint64_t place,
                                   uint64_t number)
{
    const unsigned char *b = buffer;
    uint64_t wrong = 0;
    for (size_t i = 0; i < bytes; i += 8) {
        uint64_t w = word_at(place + i / 8, number);
        size_t n = bytes - i < 8 ? bytes - i : 8;
        if (memcmp(b + i, &w, n) == 0)
            continue;
        for (size_t j = 0; j < n; j++)
            wrong += b[i + j] != ((unsigned char *)&w)[j];
    }
    return wrong;
}

static inline void stop(const char *what, const char *why)
{
    fprintf(stderr, "%s: %s\n", what, why);
    MPI_Abort(MPI_COMM_WORLD, 1);
    exit(1);
}

/* For the functions of MPI-IO, which return an error instead of stopping. */
static inline void check(int code, const char *what)
{
    char text[MPI_MAX_ERROR_STRING];
    int length;
    if (code == MPI_SUCCESS)
        return;
    MPI_Error_string(code, text, &length);
    stop(what, text);
}

static inline void *memory(size_t bytes)
{
    void *p = malloc(bytes ? bytes : 1);
    if (!p)
        stop("malloc", "not enough memory");
    memset(p, 0, bytes); /* so that no page is first touched in a timed part */
    return p;
}

static inline long number_of(const char *text, const char *what)
{
    char *end;
    long value = strtol(text, &end, 10);
    if (*text == 0 || *end != 0 || value < 0)
        stop(what, "not a number");
    return value;
}

/* MPI waits by polling. Beside a file system's own processes, on few cores, that
 * takes the processor from what is waited for; so this sleeps in between. */
static inline void wait_for(MPI_Request *request)
{
    const struct timespec pause = {0, 50000};
    int done = 0;
    while (MPI_Test(request, &done, MPI_STATUS_IGNORE), !done)
        nanosleep(&pause, NULL);
}

static inline void together(void)
{
    MPI_Request request;
    MPI_Ibarrier(MPI_COMM_WORLD, &request);
    wait_for(&request);
}

/* All ranks start together; the time of the slowest counts. */
static inline double start(void)
{
    together();
    return MPI_Wtime();
}

static inline double slowest(double since)
{
    MPI_Request request;
    double mine = MPI_Wtime() - since, all;
    MPI_Iallreduce(&mine, &all, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD, &request);
    wait_for(&request);
    return all;
}

static inline uint64_t total(uint64_t mine)
{
    MPI_Request request;
    uint64_t all;
    MPI_Iallreduce(&mine, &all, 1, MPI_UINT64_T, MPI_SUM, MPI_COMM_WORLD, &request);
    wait_for(&request);
    return all;
}

#endif
