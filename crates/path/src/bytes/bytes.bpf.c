// SPDX-License-Identifier: MIT OR GPL-2.0-only
/*
 * Counts the bytes that pass through the sockets of a path. User space marks these sockets; for any other socket the
 * cost is one test of a null pointer.
 */
typedef unsigned int __u32;
typedef unsigned long long __u64;
typedef unsigned short __u16;
typedef int __s32;
typedef long long __s64;
typedef __u16 __be16;
typedef __u32 __be32;
typedef __u32 __wsum;

/* include/uapi/linux/bpf.h */
enum bpf_map_type {
	BPF_MAP_TYPE_PERCPU_ARRAY = 6,
	BPF_MAP_TYPE_SK_STORAGE = 24,
};
enum { BPF_F_NO_PREALLOC = 1 };

#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

/* include/linux/socket.h */
#define MSG_PEEK 2

enum { SENT, RECEIVED, DIRECTIONS };

char LICENSE[] SEC("license") = "Dual MIT/GPL";

struct sock;

/* The kernel removes a mark together with its socket. */
struct {
	__uint(type, BPF_MAP_TYPE_SK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, __u32);
} marked SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, DIRECTIONS);
	__type(key, __u32);
	__type(value, __u64);
} bytes SEC(".maps");

static __always_inline int add(struct sock *sk, int length, __u32 direction)
{
	if (length <= 0 || !bpf_sk_storage_get(&marked, sk, 0, 0))
		return 0;
	__u64 *sum = bpf_map_lookup_elem(&bytes, &direction);
	/* Another task on this processor may interrupt this one. */
	if (sum)
		__sync_fetch_and_add(sum, length);
	return 0;
}

SEC("tp_btf/sock_send_length")
int BPF_PROG(sent, struct sock *sk, int length, int flags)
{
	return add(sk, length, SENT);
}

SEC("tp_btf/sock_recv_length")
int BPF_PROG(received, struct sock *sk, int length, int flags)
{
	return flags & MSG_PEEK ? 0 : add(sk, length, RECEIVED);
}
