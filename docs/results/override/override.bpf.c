// SPDX-License-Identifier: MIT OR GPL-2.0-only
/*
 * TCP between two programs of one host, cut short: a message goes from the sender's call into the receiver's queue (sk_msg,
 * BPF_F_INGRESS). A direction does so until it has sent a byte over TCP, and never again. See ../override.md.
 */
#include <linux/bpf.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

char LICENSE[] SEC("license") = "Dual MIT/GPL";

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)
struct sock {
	struct {
		struct {
			int counter;
		} rmem_alloc;
	} sk_backlog;
};

struct tcp_sock {
	__u32 write_seq;
};
#pragma clang attribute pop

/* An end of a connection, as no other end is: both initial sequence numbers (64 random bits) and both ports. */
struct end {
	__u32 sent, received;
	__u16 local, remote;
};

struct direction {
	struct end peer;
	/* write_seq while no byte has gone over TCP. */
	__u32 first;
	/* Messages since the receiver's queue was empty: each takes some 1 KiB that nothing is charged for. */
	__u32 messages;
	/* The peer's socket, as an address: sk_msg programs may not release a socket that they look up. */
	__u64 peer_at;
	__u8 is_carried;
};

struct {
	__uint(type, BPF_MAP_TYPE_SOCKHASH);
	__uint(max_entries, 65536);
	__type(key, struct end);
	__type(value, __u64);
} sockets SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 65536);
	__type(key, struct end);
	__type(value, __u64);
} addresses SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_SK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct direction);
} directions SEC(".maps");

/* run.c prints them in this order. */
enum count { SOCKETS, CARRIED, SWITCHED, NO_PEER, MESSAGES, OVER_TCP, COUNTS };

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, COUNTS);
	__type(key, __u32);
	__type(value, __u64);
} counts SEC(".maps");

/* What waits in the receiver at most; run.c sets them. */
volatile const __u32 most_bytes = 65536;
volatile const __u32 most_messages = 256;
/* To show what happens then: a direction comes back from TCP. */
volatile const __u32 comes_back = 0;

static __always_inline void count(__u32 what)
{
	__u64 *value = bpf_map_lookup_elem(&counts, &what);
	if (value)
		__sync_fetch_and_add(value, 1);
}

SEC("sockops")
int established(struct bpf_sock_ops *ops)
{
	if (ops->op != BPF_SOCK_OPS_ACTIVE_ESTABLISHED_CB && ops->op != BPF_SOCK_OPS_PASSIVE_ESTABLISHED_CB)
		return 1;
	struct bpf_sock *sk = ops->sk;
	/* Bytes in a SYN (TCP Fast Open) have gone over TCP. */
	if (!sk || ops->data_segs_in || ops->data_segs_out)
		return 1;
	__u16 local = ops->local_port, remote = bpf_ntohl(ops->remote_port);
	struct end own = { ops->snd_nxt, ops->rcv_nxt, local, remote };
	struct direction *direction = bpf_sk_storage_get(&directions, sk, 0, BPF_SK_STORAGE_GET_F_CREATE);
	if (!direction)
		return 1;
	direction->peer = (struct end){ own.received, own.sent, remote, local };
	direction->first = own.sent;
	__u64 at = (__u64)bpf_skc_to_tcp_sock(sk);
	bpf_map_update_elem(&addresses, &own, &at, BPF_ANY);
	if (!bpf_sock_hash_update(ops, &sockets, &own, BPF_NOEXIST))
		count(SOCKETS);
	return 1;
}

/* Bytes that wait in the peer; a great many where it is not there. */
static __always_inline __u32 waiting(struct direction *direction)
{
	if (!direction->peer_at) {
		__u64 *at = bpf_map_lookup_elem(&addresses, &direction->peer);
		if (!at)
			return ~0u;
		direction->peer_at = *at;
	}
	struct sock *peer = (struct sock *)direction->peer_at;
	__u32 bytes = ~0u;
	/* A socket that is gone gives some number, and the redirection then finds none. */
	bpf_core_read(&bytes, sizeof bytes, &peer->sk_backlog.rmem_alloc.counter);
	return bytes;
}

static __always_inline int over_tcp(enum count why)
{
	count(why);
	return SK_PASS;
}

SEC("sk_msg")
int redirect(struct sk_msg_md *msg)
{
	struct bpf_sock *sk = msg->sk;
	struct direction *direction = sk ? bpf_sk_storage_get(&directions, sk, 0, 0) : 0;
	struct tcp_sock *own = direction ? bpf_skc_to_tcp_sock(sk) : 0;
	if (!own)
		return SK_PASS;
	/* Order: what waits in the queue comes before what TCP delivers, so that a direction may leave and not return. */
	if (own->write_seq != direction->first && !comes_back)
		return over_tcp(OVER_TCP);
	/* The queue would take what shutdown(2) has forbidden. */
	if (sk->state != BPF_TCP_ESTABLISHED && sk->state != BPF_TCP_CLOSE_WAIT)
		return SK_PASS;
	__u32 bytes = waiting(direction);
	if (bytes == ~0u)
		return over_tcp(NO_PEER);
	if (!bytes)
		direction->messages = 0;
	if ((bytes && bytes + msg->size > most_bytes) || direction->messages >= most_messages)
		return over_tcp(SWITCHED);
	struct end peer = direction->peer;
	/* SK_DROP, where the peer has closed, would be EACCES for the program. */
	if (bpf_msg_redirect_hash(msg, &sockets, &peer, BPF_F_INGRESS) != SK_PASS)
		return over_tcp(NO_PEER);
	direction->messages++;
	if (!direction->is_carried) {
		direction->is_carried = 1;
		count(CARRIED);
	}
	count(MESSAGES);
	return SK_PASS;
}
