// SPDX-License-Identifier: MIT OR GPL-2.0-only
/* HighSpeed TCP: S. Floyd, "HighSpeed TCP for Large Congestion Windows", RFC 3649, December 2003. */
#include "cc.h"
#include "response.h"

struct highspeed_state {
	__u64 credit; /* of a packet, in 2^-32 */
};
LS_STATE(highspeed_state);

LS_CALLBACK(__u32, highspeed_on_loss, struct sock *sk)
{
	return highspeed_ssthresh(tcp_sk(sk));
}

LS_CALLBACK(void, highspeed_cong_avoid, struct sock *sk, __u32 ack, __u32 acked)
{
	struct highspeed_state *ca = ls_private(sk);

	(void)ack;
	acked = ls_slow_start(sk, acked);
	if (acked)
		highspeed_grow(tcp_sk(sk), &ca->credit, acked);
}

LS_CALLBACK(__u32, highspeed_undo_cwnd, struct sock *sk)
{
	return ls_undo(sk);
}

LS_CONTROL(highspeed) = {
	.ssthresh = LS_OP(highspeed_on_loss),
	.cong_avoid = LS_OP(highspeed_cong_avoid),
	.undo_cwnd = LS_OP(highspeed_undo_cwnd),
	.flags = LS_FOR_ANYBODY,
	.name = "ls_highspeed",
};
