// SPDX-License-Identifier: MIT OR GPL-2.0-only
/*
 * The fields of kernel structures that the tracer reads. Offsets here mean nothing:
 * preserve_access_index makes each access a CO-RE relocation, which is resolved against the running
 * kernel's own BTF when the program is loaded. So no dump of a kernel's types (vmlinux.h, 3 MB) is
 * needed.
 */
#ifndef LANDSPEED_KERNEL_H
#define LANDSPEED_KERNEL_H

typedef unsigned char __u8;
typedef unsigned short __u16;
typedef unsigned int __u32;
typedef unsigned long long __u64;
typedef signed char __s8;
typedef short __s16;
typedef int __s32;
typedef long long __s64;
typedef __u16 __be16;
typedef __u32 __be32;
typedef __u32 __wsum;
typedef _Bool bool;
enum { false, true };

/* include/uapi/linux/bpf.h */
enum bpf_map_type {
	BPF_MAP_TYPE_HASH = 1,
	BPF_MAP_TYPE_PERCPU_ARRAY = 6,
	BPF_MAP_TYPE_LRU_HASH = 9,
};
enum { BPF_ANY, BPF_NOEXIST, BPF_EXIST };

/* include/uapi/linux/if_ether.h, in.h, socket.h */
#define ETH_P_IP 0x0800
#define ETH_P_IPV6 0x86dd
#define IPPROTO_TCP 6
#define IPPROTO_UDP 17
#define IPPROTO_FRAGMENT 44
#define AF_INET6 10

/* include/linux/netdevice.h, enum gro_result */
#define GRO_MERGED 0
#define GRO_MERGED_FREE 1

/* include/linux/skbuff.h: nothing has verified the checksum. */
#define CHECKSUM_NONE 0

/* include/net/tcp.h, TCP_HP_BITS: all bits of the word with the data offset, the flags and the window, but the reserved ones
 * and PSH. In the processor's byte order. */
#define TCP_HP_BITS (~(0x0f000000 | 0x00080000))

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct ns_common {
	unsigned int inum;
};

struct net {
	struct ns_common ns;
};

typedef struct {
	struct net *net;
} possible_net_t;

struct net_device {
	int ifindex;
	possible_net_t nd_net;
};

struct in6_addr {
	union {
		__be32 u6_addr32[4];
	} in6_u;
};

struct sock_common {
	__be32 skc_daddr;
	__be32 skc_rcv_saddr;
	__be16 skc_dport;
	__u16 skc_num;
	unsigned short skc_family;
	possible_net_t skc_net;
	struct in6_addr skc_v6_daddr;
	struct in6_addr skc_v6_rcv_saddr;
};

typedef struct {
	int owned;
} socket_lock_t;

struct sk_buff;

struct sk_buff_head {
	struct sk_buff *next;
	__u32 qlen;
};

struct sock {
	struct sock_common __sk_common;
	struct sk_buff_head sk_receive_queue;
	socket_lock_t sk_lock;
	__u16 sk_protocol;
};

struct udp_sock {
	struct sk_buff_head reader_queue;
};

struct tcp_sock {
	__u32 rcv_nxt;
	__u32 copied_seq;
	__u32 write_seq;
	__u32 snd_nxt;
	__be32 pred_flags;
};

struct sk_buff {
	struct net_device *dev;
	struct sock *sk;
	unsigned int len;
	int skb_iif;
	__u8 ip_summed : 2;
	__be16 protocol;
	__u16 network_header;
	unsigned char *head;
	unsigned char *data;
};

struct iov_iter {
	unsigned long count;
};

struct msghdr {
	struct iov_iter msg_iter;
};

#pragma clang attribute pop

#endif
