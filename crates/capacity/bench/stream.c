/*
 * The four kernels of STREAM in plain C, written from the published rules
 * (https://www.cs.virginia.edu/stream/ref.html), to compare landspeed's own against.
 *
 *   cc -O3 [-fopenmp] -DELEMENTS=16777216 -o stream stream.c -lm && yes | head -11 | ./stream
 *
 * Each line of input asks for one repetition and is answered by a line, so that two programs can take
 * turns. The end of the input is answered by the best rate of each kernel after the first repetition, in
 * bytes per second:
 *
 *   copy 1.2e10
 *   scale ...
 *
 * Static arrays of doubles, as large as the caller says; the compiler is left to vectorise.
 */
#include <math.h>
#include <stdio.h>
#include <time.h>

#ifndef ELEMENTS
#define ELEMENTS 16777216
#endif

/*
 * STREAM's OFFSET: arrays a power of two apart fall on the same sets and banks. Two pages here, which is
 * how far apart an allocator puts them, too.
 */
#define OFFSET 1024

static double a[ELEMENTS + OFFSET], b[ELEMENTS + OFFSET], c[ELEMENTS + OFFSET];
static const double scalar = 3.0;

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec + t.tv_nsec * 1e-9;
}

static void fill(void)
{
#pragma omp parallel for
	for (long i = 0; i < ELEMENTS; i++) {
		a[i] = 1.0;
		b[i] = 2.0;
		c[i] = 0.0;
	}
#pragma omp parallel for
	for (long i = 0; i < ELEMENTS; i++)
		a[i] = 2.0 * a[i];
}

static void run(int kernel)
{
	switch (kernel) {
	case 0:
#pragma omp parallel for
		for (long i = 0; i < ELEMENTS; i++)
			c[i] = a[i];
		break;
	case 1:
#pragma omp parallel for
		for (long i = 0; i < ELEMENTS; i++)
			b[i] = scalar * c[i];
		break;
	case 2:
#pragma omp parallel for
		for (long i = 0; i < ELEMENTS; i++)
			c[i] = a[i] + b[i];
		break;
	default:
#pragma omp parallel for
		for (long i = 0; i < ELEMENTS; i++)
			a[i] = b[i] + scalar * c[i];
	}
}

static int right(int repetitions)
{
	double ea = 2.0, eb = 2.0, ec = 0.0, error = 0.0;

	for (int r = 0; r < repetitions; r++) {
		ec = ea;
		eb = scalar * ec;
		ec = ea + eb;
		ea = eb + scalar * ec;
	}
	for (long i = 0; i < ELEMENTS; i++)
		error += fabs(a[i] / ea - 1) + fabs(b[i] / eb - 1) + fabs(c[i] / ec - 1);
	return error / ELEMENTS <= 1e-13;
}

int main(void)
{
	static const char *const name[4] = { "copy", "scale", "add", "triad" };
	static const int arrays[4] = { 2, 2, 3, 3 };
	double best[4] = { 0, 0, 0, 0 };
	char line[16];
	int r;

	fill();
	for (r = 0; fgets(line, sizeof(line), stdin); r++) {
		for (int k = 0; k < 4; k++) {
			double start = now(), rate;

			run(k);
			rate = (double)arrays[k] * sizeof(double) * ELEMENTS / (now() - start);
			if (r > 0 && rate > best[k])
				best[k] = rate;
		}
		puts("done");
		fflush(stdout);
	}
	if (r > 0 && !right(r)) {
		fprintf(stderr, "the arrays are wrong\n");
		return 1;
	}
	for (int k = 0; k < 4; k++)
		printf("%s %.17g\n", name[k], best[k]);
	return 0;
}
