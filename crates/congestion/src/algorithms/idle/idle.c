// SPDX-License-Identifier: MIT OR GPL-2.0-only
/* A window that stays as it is, whatever happens: what a control costs that does nothing. */
#include "cc.h"

/* Packets: enough that acknowledgements come as they come to the others. */
#define IDLE_WINDOW 128

LS_CALLBACK(__u32, idle_ssthresh, struct sock *sk)
{
	(void)sk;
	return IDLE_WINDOW;
}

LS_CALLBACK(void, idle_cong_avoid, struct sock *sk, __u32 ack, __u32 acked)
{
	(void)ack;
	(void)acked;
	tcp_sk(sk)->snd_cwnd = IDLE_WINDOW;
}

LS_CALLBACK(__u32, idle_undo_cwnd, struct sock *sk)
{
	(void)sk;
	return IDLE_WINDOW;
}

LS_CONTROL(idle) = {
	.ssthresh = LS_OP(idle_ssthresh),
	.cong_avoid = LS_OP(idle_cong_avoid),
	.undo_cwnd = LS_OP(idle_undo_cwnd),
	.flags = LS_FOR_ANYBODY,
	.name = "ls_idle",
};
