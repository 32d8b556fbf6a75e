// SPDX-License-Identifier: MIT OR GPL-2.0-only
/* A control of Linux behind the table of callbacks of c/native.h. */

struct ls_table {
	void (*init)(struct sock *sk);
	u32 (*ssthresh)(struct sock *sk);
	void (*cong_avoid)(struct sock *sk, u32 ack, u32 acked);
	void (*set_state)(struct sock *sk, u8 new_state);
	void (*cwnd_event)(struct sock *sk, u32 event);
	void (*pkts_acked)(struct sock *sk, const struct ack_sample *sample);
	u32 (*min_tso_segs)(struct sock *sk);
	u32 (*undo_cwnd)(struct sock *sk);
	void (*cong_control)(struct sock *sk, u32 ack, s32 flag, const struct rate_sample *rs);
	u32 flags;
	char name[16];
};

static const struct tcp_congestion_ops *ls_ops(void)
{
	if (ls_registered)
		return ls_registered;
	LS_SETTINGS;
#ifdef LS_IS_RENO
	return &tcp_reno;
#else
	if (ls_module())
		abort();
	return ls_registered;
#endif
}

/* Starts every call: sets the time and the connection whose random generator is used. */
static const struct tcp_congestion_ops *ls_enter(struct sock *sk)
{
	ls_jiffies = sk->tcp_mstamp / 1000;
	ls_sk = sk;
	return ls_ops();
}

static void table_init(struct sock *sk)
{
	const struct tcp_congestion_ops *ops = ls_enter(sk);

	sk->sk_pacing_shift = 10;
	if (ICSK_CA_PRIV_SIZE < sizeof(sk->icsk_ca_priv)) {
		sk->lsndtime = ls_jiffies;
		sk->sk_gso_max_size = 65536;
		sk->sk_pacing_status = SK_PACING_NONE;
	}
	if (ops->init)
		ops->init(sk);
}

static u32 table_ssthresh(struct sock *sk)
{
	return ls_enter(sk)->ssthresh(sk);
}

static void table_cong_avoid(struct sock *sk, u32 ack, u32 acked)
{
	const struct tcp_congestion_ops *ops = ls_enter(sk);

	if (ops->cong_avoid)
		ops->cong_avoid(sk, ack, acked);
}

static void table_set_state(struct sock *sk, u8 new_state)
{
	const struct tcp_congestion_ops *ops = ls_enter(sk);

	if (ops->set_state)
		ops->set_state(sk, new_state);
}

static void table_cwnd_event(struct sock *sk, u32 event)
{
	const struct tcp_congestion_ops *ops = ls_enter(sk);

	if (ops->cwnd_event)
		ops->cwnd_event(sk, event);
}

/* An acknowledgement lets a packet be sent. tcp_ack first reports the acknowledgement, then the packets it covers. */
static void table_pkts_acked(struct sock *sk, const struct ack_sample *sample)
{
	const struct tcp_congestion_ops *ops = ls_enter(sk);

	if (ICSK_CA_PRIV_SIZE < sizeof(sk->icsk_ca_priv))
		sk->lsndtime = ls_jiffies;
	if (ops->in_ack_event)
		ops->in_ack_event(sk, CA_ACK_WIN_UPDATE);
	if (ops->pkts_acked)
		ops->pkts_acked(sk, sample);
}

static u32 table_min_tso_segs(struct sock *sk)
{
	const struct tcp_congestion_ops *ops = ls_enter(sk);

	return ops->min_tso_segs ? ops->min_tso_segs(sk) : 2;
}

static u32 table_undo_cwnd(struct sock *sk)
{
	return ls_enter(sk)->undo_cwnd(sk);
}

static void table_cong_control(struct sock *sk, u32 ack, s32 flag, const struct rate_sample *rs)
{
	const struct tcp_congestion_ops *ops = ls_enter(sk);

	if (ops->cong_control)
		ops->cong_control(sk, ack, flag, rs);
}

const struct ls_table ls_linux = {
	.init = table_init,
	.ssthresh = table_ssthresh,
	.cong_avoid = table_cong_avoid,
	.set_state = table_set_state,
	.cwnd_event = table_cwnd_event,
	.pkts_acked = table_pkts_acked,
	.min_tso_segs = table_min_tso_segs,
	.undo_cwnd = table_undo_cwnd,
	.cong_control = table_cong_control,
	.name = "linux",
};
