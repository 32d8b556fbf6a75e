// SPDX-License-Identifier: MIT OR GPL-2.0-only
/* State that the programs share with each other and with user space. */
#ifndef LANDSPEED_STATE_H
#define LANDSPEED_STATE_H

/* The packets to watch. User space writes it while nothing is attached, except for `stride`. */
struct config {
	/* The inode number of the network namespace, and the index of the link in it. */
	__u32 netns;
	__u32 ifindex;
	/* TCP: the segment that holds a byte whose sequence number is a multiple of this is followed. It is
	 * odd, so that it visits all offsets of the application's writes, which are often powers of two. */
	__u32 stride;
	/* UDP: one datagram in `one_in` is followed. */
	__u32 one_in;
	/* The number of the observer's window; entries of path_followed from earlier ones are ignored. */
	__u32 epoch;
	/* `only_flows`: true if only the flows in path_flows count. `fragments`: true if fragments, which
	 * have no ports, may be theirs. */
	__u32 only_flows;
	__u32 fragments;
	/* The keys of one of those flows, as sent and as received. It is usually the only one, and then no look-up is
	 * needed. */
	__u64 flow[2];
	/* True if only flows with an end at `address` (IPv4 mapped into IPv6) and `port` (0: any) count. */
	__u32 only_address;
	__u32 address[4];
	__u32 port;
	/* True if the device frees a packet when it has been sent, so that freeing means sending. */
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
	/* Packets whose checksum the device had verified, or need not verify, when they arrived. */
	COUNT_CHECKSUM_DONE,
	/* Segments that reached TCP after GRO, and those that met the conditions of header prediction. */
	COUNT_TCP_SEGMENTS,
	COUNT_PREDICTED,
	COUNT_LOST,
	/* Packets with payload and the bytes of that payload, from which the stride is computed. */
	COUNT_DATA_PACKETS,
	COUNT_DATA_BYTES,
	COUNTS,
};

/* The hops, in the order of record's Hop. */
enum hop {
	SEND_TO_QUEUE,
	QUEUE_TO_DRIVER,
	DRIVER_TO_WIRE,
	DEVICE_TO_TRANSPORT,
	DEVICE_TO_SOCKET,
	SOCKET_TO_APPLICATION,
	HOPS,
};

/* The stage at which a followed packet was last seen. */
enum stage {
	STAGE_SENT = 1,
	STAGE_QUEUED,
	STAGE_DRIVER,
	STAGE_ARRIVED,
	STAGE_TRANSPORT,
	STAGE_SOCKET,
};

struct stamp {
	/* The time at which it reached `stage`, and the time at which it arrived at the device layer. */
	__u64 at;
	__u64 arrived;
	__u32 stage;
	__u32 epoch;
};

/* Slot k counts times from 2^k to 2^(k+1) ns. */
struct histogram {
	__u64 slots[64];
};

struct counts {
	__u64 of[COUNTS];
};

/* What one processor is working on: addresses, or keys of path_followed; 0 means none. */
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

/* Packets on their way. An entry whose packet is never seen again is the first to be evicted. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 4096);
	__type(key, __u64);
	__type(value, struct stamp);
} path_followed SEC(".maps");

/* For each UDP socket, the datagram that is read next, if one waits. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 1024);
	__type(key, __u64);
	__type(value, __u64);
} path_next SEC(".maps");

/* The flows to watch, keyed by flow_key(). */
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
