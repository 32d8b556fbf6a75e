// SPDX-License-Identifier: MIT OR GPL-2.0-only
/*
 * Follows a sample of the packets. A TCP segment is identified by its ports and by the one byte in a
 * stride that it holds: unlike the packet's address in memory, that stays valid through segmentation,
 * merging, copies and both hosts. A datagram is identified by its address, which nothing on its way
 * changes.
 */
#ifndef LANDSPEED_FOLLOW_H
#define LANDSPEED_FOLLOW_H

static __always_inline __u32 log2_of(__u64 value)
{
	__u32 log = 0;
	if (value >> 32) {
		value >>= 32;
		log += 32;
	}
	if (value >> 16) {
		value >>= 16;
		log += 16;
	}
	if (value >> 8) {
		value >>= 8;
		log += 8;
	}
	if (value >> 4) {
		value >>= 4;
		log += 4;
	}
	if (value >> 2) {
		value >>= 2;
		log += 2;
	}
	return log + (value >> 1 ? 1 : 0);
}

static __always_inline void took(enum hop hop, __u64 from, __u64 to)
{
	__u32 index = hop;
	struct histogram *histogram = bpf_map_lookup_elem(&path_hops, &index);
	/* The clocks of two processors may differ slightly. A hop with a negative time then took next to no time. */
	if (histogram)
		histogram->slots[log2_of(to > from ? to - from : 1) & 63]++;
}

static __always_inline __u64 segment_key(__u16 source, __u16 destination, __u32 byte)
{
	return ((__u64)source << 48 | (__u64)destination << 32) ^ byte;
}

/* Returns the key under which a packet is followed, or 0 if it is not. If `choose` is set, this
 * processor's count of datagrams selects among them. */
static __always_inline __u64 key_of(struct sk_buff *skb, const struct packet *packet, bool choose)
{
	if (packet->protocol == IPPROTO_TCP) {
		__u32 past = packet->sequence % config.stride;
		__u32 ahead = past ? config.stride - past : 0;
		if (ahead >= packet->payload)
			return 0;
		return segment_key(packet->source_port, packet->destination_port, packet->sequence + ahead);
	}
	if (packet->protocol != IPPROTO_UDP)
		return 0;
	if (choose) {
		struct here *here = this_cpu();
		if (!here || here->datagrams++ % config.one_in)
			return 0;
	}
	return (__u64)skb;
}

/* Returns the stamp of `key` if its packet was last seen at one of two stages, in this window of the
 * observer. */
static __always_inline struct stamp *seen_at(__u64 key, enum stage one, enum stage other)
{
	struct stamp *stamp = key ? bpf_map_lookup_elem(&path_followed, &key) : 0;
	if (!stamp || stamp->epoch != config.epoch || (stamp->stage != one && stamp->stage != other))
		return 0;
	return stamp;
}

static __always_inline void begin(__u64 key, enum stage stage)
{
	__u64 now = bpf_ktime_get_ns();
	struct stamp stamp = { .at = now, .arrived = now, .stage = stage, .epoch = config.epoch };
	if (bpf_map_update_elem(&path_followed, &key, &stamp, BPF_ANY))
		add(COUNT_LOST, 1);
}

static __always_inline void forget(__u64 key)
{
	bpf_map_delete_elem(&path_followed, &key);
}

static __always_inline void weigh(const struct packet *packet)
{
	if (packet->protocol != IPPROTO_TCP || !packet->payload)
		return;
	add(COUNT_DATA_PACKETS, 1);
	add(COUNT_DATA_BYTES, packet->payload);
}

#endif
