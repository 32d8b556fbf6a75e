// SPDX-License-Identifier: MIT OR GPL-2.0-only
/* Parses packets, and decides whether they are watched. */
#ifndef LANDSPEED_PACKET_H
#define LANDSPEED_PACKET_H

/* The parsed headers. Ports are in the processor's byte order; a fragment after the first has none. */
struct packet {
	__u32 source[4];
	__u32 destination[4];
	__u32 sequence;
	__u32 payload;
	__u16 source_port;
	__u16 destination_port;
	__u8 protocol;
	bool fragment;
};

/* RFC 791 section 3.1. */
struct ipv4 {
	__u8 version_length;
	__u8 tos;
	__be16 total_length;
	__be16 id;
	__be16 fragment;
	__u8 ttl;
	__u8 protocol;
	__be16 checksum;
	__be32 source;
	__be32 destination;
};

/* RFC 8200 section 3. */
struct ipv6 {
	__be32 version_class_label;
	__be16 payload_length;
	__u8 next_header;
	__u8 hop_limit;
	__be32 source[4];
	__be32 destination[4];
};

/* RFC 9293 section 3.1, as far as it is needed; UDP's ports are at the same offsets (RFC 768). */
struct transport {
	__be16 source_port;
	__be16 destination_port;
	__be32 sequence;
	__be32 acknowledgement;
	__u8 offset;
	__u8 flags;
	__be16 window;
};

static __always_inline bool in_namespace(struct net *net)
{
	return net->ns.inum == config.netns;
}

static __always_inline bool on_link(struct sk_buff *skb)
{
	struct net_device *dev = skb->dev;
	return dev && dev->ifindex == config.ifindex && in_namespace(dev->nd_net.net);
}

static __always_inline void map_ipv4(__u32 *into, __be32 address)
{
	into[0] = 0;
	into[1] = 0;
	into[2] = bpf_htonl(0xffff);
	into[3] = address;
}

/* Both parsers return the transport header's offset in the packet, or 0 if the packet is not IP. */
static __always_inline __u32 parse_ipv4(unsigned char *at, struct packet *packet, __u32 *length)
{
	struct ipv4 ip;
	if (bpf_probe_read_kernel(&ip, sizeof(ip), at) || ip.version_length >> 4 != 4)
		return 0;
	packet->protocol = ip.protocol;
	packet->fragment = bpf_ntohs(ip.fragment) & 0x1fff;
	if (config.only_address) {
		map_ipv4(packet->source, ip.source);
		map_ipv4(packet->destination, ip.destination);
	}
	*length = bpf_ntohs(ip.total_length);
	return (ip.version_length & 15) * 4;
}

/* Only the fragment's extension header is followed: packets with others count as another protocol. */
static __always_inline __u32 parse_ipv6(unsigned char *at, struct packet *packet, __u32 *length)
{
	struct ipv6 ip;
	if (bpf_probe_read_kernel(&ip, sizeof(ip), at))
		return 0;
	packet->protocol = ip.next_header;
	__builtin_memcpy(packet->source, ip.source, sizeof(packet->source));
	__builtin_memcpy(packet->destination, ip.destination, sizeof(packet->destination));
	*length = ip.payload_length ? bpf_ntohs(ip.payload_length) + sizeof(ip) : 0;
	if (ip.next_header != IPPROTO_FRAGMENT)
		return sizeof(ip);
	/* RFC 8200 section 4.5: next header, reserved, offset in 8-byte units and flags, identification. */
	__u8 extension[8];
	if (bpf_probe_read_kernel(extension, sizeof(extension), at + sizeof(ip)))
		return 0;
	packet->protocol = extension[0];
	packet->fragment = extension[2] || extension[3] & 0xf8;
	return sizeof(ip) + sizeof(extension);
}

/*
 * Parses the headers at `at`, which is within the packet's linear part. `left` is the number of bytes
 * from there to the packet's end. Short frames are padded on the wire, so IP's own length is used if
 * there is one; packets that offloads made larger than 64 KB have none.
 */
static __always_inline bool parse(struct sk_buff *skb, unsigned char *at, struct packet *packet)
{
	struct transport header = {};
	__u32 left = skb->len - (__u32)(at - skb->data), length = 0, offset;
	__builtin_memset(packet, 0, sizeof(*packet));
	if (skb->protocol == bpf_htons(ETH_P_IP))
		offset = parse_ipv4(at, packet, &length);
	else if (skb->protocol == bpf_htons(ETH_P_IPV6))
		offset = parse_ipv6(at, packet, &length);
	else
		return false;
	if (!offset)
		return false;
	if (packet->fragment)
		return true;
	if (packet->protocol != IPPROTO_TCP && packet->protocol != IPPROTO_UDP)
		return true;
	if (bpf_probe_read_kernel(&header, sizeof(header), at + offset))
		return false;
	packet->source_port = bpf_ntohs(header.source_port);
	packet->destination_port = bpf_ntohs(header.destination_port);
	if (length && length < left)
		left = length;
	offset += packet->protocol == IPPROTO_TCP ? (header.offset >> 4) * 4 : 8;
	packet->sequence = bpf_ntohl(header.sequence);
	packet->payload = left > offset ? left - offset : 0;
	return true;
}

/* Returns where the network header is, once the network layer has received or made the packet. */
static __always_inline unsigned char *network_header(struct sk_buff *skb)
{
	return skb->head + skb->network_header;
}

static __always_inline __u64 flow_key(__u8 protocol, __u16 source, __u16 destination)
{
	return (__u64)protocol << 32 | (__u32)source << 16 | destination;
}

static __always_inline bool is_flow(__u8 protocol, __u16 source, __u16 destination)
{
	__u64 key = flow_key(protocol, source, destination);
	return key == config.flow[0] || key == config.flow[1] || bpf_map_lookup_elem(&path_flows, &key);
}

static __always_inline bool at_address(const __u32 *address, __u16 port)
{
	if (config.port && config.port != port)
		return false;
	return address[0] == config.address[0] && address[1] == config.address[1] &&
	       address[2] == config.address[2] && address[3] == config.address[3];
}

/* User space adds a flow in both directions, and with port 0 for an end whose port is not fixed. */
static __always_inline bool wanted(const struct packet *packet)
{
	__u16 source = packet->source_port, destination = packet->destination_port;
	if (config.only_address)
		return at_address(packet->source, source) || at_address(packet->destination, destination);
	if (!config.only_flows)
		return true;
	if (packet->fragment)
		return config.fragments;
	return is_flow(packet->protocol, source, destination) || is_flow(packet->protocol, source, 0) ||
	       is_flow(packet->protocol, 0, destination);
}

/* The peer's end is the source, as in an arriving packet. */
static __always_inline bool wanted_socket(struct sock *sk, struct packet *packet)
{
	if (!in_namespace(sk->__sk_common.skc_net.net))
		return false;
	packet->protocol = sk->sk_protocol;
	packet->fragment = false;
	packet->source_port = bpf_ntohs(sk->__sk_common.skc_dport);
	packet->destination_port = sk->__sk_common.skc_num;
	if (!config.only_address)
		return wanted(packet);
	if (sk->__sk_common.skc_family == AF_INET6) {
		for (int i = 0; i < 4; i++) {
			packet->source[i] = sk->__sk_common.skc_v6_daddr.in6_u.u6_addr32[i];
			packet->destination[i] = sk->__sk_common.skc_v6_rcv_saddr.in6_u.u6_addr32[i];
		}
	} else {
		map_ipv4(packet->source, sk->__sk_common.skc_daddr);
		map_ipv4(packet->destination, sk->__sk_common.skc_rcv_saddr);
	}
	return wanted(packet);
}

#endif
