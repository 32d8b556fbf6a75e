// SPDX-License-Identifier: MIT OR GPL-2.0-only
/* HighSpeed TCP's a(w) and b(w) for any window: RFC 3649, section 5. HSTCP-LP and TCP-Africa use them too. */
#ifndef LANDSPEED_HIGHSPEED_RESPONSE_H
#define LANDSPEED_HIGHSPEED_RESPONSE_H

#include "grow.h"
#include "table.h"

/* RFC 3649, section 5: up to this window the response function is that of standard TCP. */
#define HIGHSPEED_LOW_WINDOW 38U

/* The table begins at 2^5 and has 2^4 rows per octave. Above its last row, a and b stay constant. */
#define HIGHSPEED_FIRST 5
#define HIGHSPEED_STEPS 4
#define HIGHSPEED_LAST ((1U << 17) - 1)

/* The exponent of the highest power of two in w, which is 32 to 2^17 - 1. */
static __always_inline __u32 highspeed_octave(__u32 w)
{
	__u32 octave = HIGHSPEED_FIRST;

	w >>= HIGHSPEED_FIRST;
	if (w >= 1U << 8) {
		w >>= 8;
		octave += 8;
	}
	if (w >= 1U << 4) {
		w >>= 4;
		octave += 4;
	}
	if (w >= 1U << 2) {
		w >>= 2;
		octave += 2;
	}
	return octave + (w >= 2);
}

/* Interpolates linearly between two rows of the table: within 0.1 % of the formulas. */
static __always_inline struct highspeed highspeed_at(__u32 w)
{
	const __u32 rows = sizeof(highspeed_table) / sizeof(highspeed_table[0]);
	struct highspeed at = { .a = LS_ONE, .b = LS_ONE / 2 };
	const struct highspeed *low, *high;
	__u32 shift, row;
	__u64 rest;

	if (w <= HIGHSPEED_LOW_WINDOW)
		return at;
	w = ls_min(w, HIGHSPEED_LAST);
	shift = (highspeed_octave(w) - HIGHSPEED_STEPS) & 15;
	row = ((shift + HIGHSPEED_STEPS - HIGHSPEED_FIRST) << HIGHSPEED_STEPS) + (w >> shift) - (1U << HIGHSPEED_STEPS);
	/* Never true; the check is for the kernel's verifier. */
	if (row >= rows - 1)
		return at;
	low = &highspeed_table[row];
	high = &highspeed_table[row + 1];
	rest = w & ((1U << shift) - 1);
	at.a = low->a + (__u32)((high->a - low->a) * rest >> shift);
	at.b = low->b - (__u32)((low->b - high->b) * rest >> shift);
	return at;
}

/* RFC 3649, section 5: w = w + a(w)/w for each acknowledged packet. */
static __always_inline void highspeed_grow(struct tcp_sock *tp, __u64 *credit, __u32 acked)
{
	ls_grow(tp, credit, acked, highspeed_at(tp->snd_cwnd).a);
}

/* RFC 3649, section 5: w = (1 - b(w)) w at a loss. */
static __always_inline __u32 highspeed_ssthresh(const struct tcp_sock *tp)
{
	return ls_decreased(tp, highspeed_at(tp->snd_cwnd).b);
}

#endif
