// SPDX-License-Identifier: MIT OR GPL-2.0-only
/* What the programs share with each other and with user space. */
#ifndef LANDSPEED_STATE_H
#define LANDSPEED_STATE_H

/* What to look at; written by user space while nothing is attached, but for `stride`. */
struct config {
	/* Inode number of the network namespace, and index of the link in it. */
	__u32 netns;
	__u32 ifindex;
	/* TCP: the segment that holds a byte whose sequence number is a multiple of this is followed. Odd,
	 * so that it walks over all places of the application's writes, which are often powers of two. */
	__u32 stride;
	/* UDP: one datagram in so many is followed. */
	__u32 one_in;
	/* Which window of the observer this is: what an earlier one left in `followed` is not used. */
	__u32 epoch;
	/* Whether only the flows in `flows` count, and whether fragments without ports may be theirs. */
	__u32 only_flows;
	__u32 fragments;
	/* One of those flows, as sent and as received: it is mostly the only one, and need not be looked up. */
	__u64 flow[2];
	/* Whether only flows with an end at `address` (IPv4 mapped into IPv6) and `port` (0: any) count. */
	__u32 only_address;
	__u32 address[4];
	__u32 port;
	/* Whether the device frees a packet when it has been sent, so that the freeing is the sending. */
	__u32 completion;
};
struct config config;

enum count {
	COUNT_SENT,
	COUNT_RECEIVED,
	COUNT_MERGED,
	COUNT_BACKLOG,
	COUNT_RETRANSMITTED,
	COUNT_OUT_OF_ORDER,
	COUNT_FRAGMENTS,
	COUNT_LOST,
	/* Packets with payload and that payload: what the stride is set by. */
	COUNT_DATA_PACKETS,
	COUNT_DATA_BYTES,
	COUNTS,
};

/* In the order of record's Hop. */
enum hop {
	SEND_TO_QUEUE,
	QUEUE_TO_DRIVER,
	DRIVER_TO_WIRE,
	DEVICE_TO_TRANSPORT,
	DEVICE_TO_SOCKET,
	SOCKET_TO_APPLICATION,
	HOPS,
};

/* Where a followed packet was seen last. */
enum stage {
	STAGE_SENT = 1,
	STAGE_QUEUED,
	STAGE_DRIVER,
	STAGE_ARRIVED,
	STAGE_TRANSPORT,
	STAGE_SOCKET,
};

struct stamp {
	/* When it reached `stage`, and when it arrived at the device layer. */
	__u64 at;
	__u64 arrived;
	__u32 stage;
	__u32 epoch;
};

/* Slot k: 2^k to 2^(k+1) ns. */
struct histogram {
	__u64 slots[64];
};

struct counts {
	__u64 of[COUNTS];
};

/* What one processor is in the middle of. Keys are addresses or `followed` keys; 0 is nothing. */
struct here {
	__u64 queued;
	__u64 queued_key;
	__u64 sending;
	__u64 sending_since;
	__u64 arriving;
	__u64 delivering;
	__u64 delivering_to;
	__u32 in_gro;
	__u32 datagrams;
	__u32 queued_fragment;
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct counts);
} path_counts SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, HOPS);
	__type(key, __u32);
	__type(value, struct histogram);
} path_hops SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct here);
} path_here SEC(".maps");

/* Drops by the kernel's enum skb_drop_reason. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 512);
	__type(key, __u32);
	__type(value, __u64);
} path_drops SEC(".maps");

/* Packets on their way. An entry whose packet is never seen again is the first to make room. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 4096);
	__type(key, __u64);
	__type(value, struct stamp);
} path_followed SEC(".maps");

/* By UDP socket: the datagram that is read next, where one waits. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 1024);
	__type(key, __u64);
	__type(value, __u64);
} path_next SEC(".maps");

/* Flows to look at: see flow_key(). */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 8192);
	__type(key, __u64);
	__type(value, __u8);
} path_flows SEC(".maps");

static __always_inline struct here *this_cpu(void)
{
	__u32 zero = 0;
	return bpf_map_lookup_elem(&path_here, &zero);
}

static __always_inline void add(enum count what, __u64 n)
{
	__u32 zero = 0;
	struct counts *counts = bpf_map_lookup_elem(&path_counts, &zero);
	if (counts)
		counts->of[what] += n;
}

#endif
