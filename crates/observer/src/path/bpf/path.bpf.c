// SPDX-License-Identifier: MIT OR GPL-2.0-only
/*
 * Traces a packet's way through one host, as MAGNET did for SC'03, with today's tracepoints. User space
 * attaches these programs for some milliseconds at a time; points.rs says which of them a kernel can
 * have.
 */
#include "kernel.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_tracing.h>
#include <bpf/bpf_core_read.h>
#include "state.h"
#include "packet.h"
#include "follow.h"

char LICENSE[] SEC("license") = "Dual MIT/GPL";

/* ---- down: the send call, the qdisc, the driver ---- */

/* The call takes bytes from write_seq on. The program runs once for each piece, and again after a wait
 * for room in the send buffer, so the wait counts as the application's time, not the packet's. */
static __always_inline int sent(struct sock *sk, struct msghdr *msg)
{
	struct packet packet = {};
	if (!wanted_socket(sk, &packet))
		return 0;
	struct tcp_sock *tp = bpf_skc_to_tcp_sock(sk);
	if (!tp)
		return 0;
	packet.sequence = tp->write_seq;
	packet.payload = msg->msg_iter.count;
	__u16 local = packet.destination_port;
	packet.destination_port = packet.source_port;
	packet.source_port = local;
	__u64 key = key_of(0, &packet, false);
	if (key)
		begin(key, STAGE_SENT);
	return 0;
}

SEC("tp_btf/tcp_sendmsg_locked")
int BPF_PROG(path_sent, struct sock *sk, struct msghdr *msg)
{
	return sent(sk, msg);
}

/* For kernels without that tracepoint. */
SEC("fentry/tcp_sendmsg_locked")
int BPF_PROG(path_sent_call, struct sock *sk, struct msghdr *msg)
{
	return sent(sk, msg);
}

/* Bytes below snd_nxt were sent before, so a segment with them is a retransmission, whose send call ended long ago. */
static __always_inline bool is_new(struct sk_buff *skb, const struct packet *packet)
{
	struct tcp_sock *tp = (struct tcp_sock *)skb->sk;
	return tp && packet->sequence == BPF_CORE_READ(tp, snd_nxt);
}

SEC("tp_btf/net_dev_queue")
int BPF_PROG(path_queued, struct sk_buff *skb)
{
	struct packet packet;
	struct here *here = this_cpu();
	if (!here || !on_link(skb) || !parse(skb, network_header(skb), &packet) || !wanted(&packet))
		return 0;
	weigh(&packet);
	__u64 key = key_of(skb, &packet, true);
	here->queued = (__u64)skb;
	here->queued_key = key;
	here->queued_fragment = packet.fragment;
	if (!key)
		return 0;
	struct stamp *stamp = seen_at(key, STAGE_SENT, STAGE_SENT);
	if (stamp && is_new(skb, &packet))
		took(SEND_TO_QUEUE, stamp->at, bpf_ktime_get_ns());
	begin(key, STAGE_QUEUED);
	return 0;
}

/* Decides whether the packet is wanted, and sets its key and whether it is a fragment. A packet that
 * was not queued comes straight from the program above, whose results are reused. */
static __always_inline bool judge(struct sk_buff *skb, struct here *here, __u64 *key, bool *fragment)
{
	struct packet packet;
	if (here->queued == (__u64)skb) {
		here->queued = 0;
		*key = here->queued_key;
		*fragment = here->queued_fragment;
		return true;
	}
	if (!on_link(skb) || !parse(skb, network_header(skb), &packet) || !wanted(&packet))
		return false;
	*key = key_of(skb, &packet, false);
	*fragment = packet.fragment;
	return true;
}

SEC("tp_btf/net_dev_start_xmit")
int BPF_PROG(path_driver, struct sk_buff *skb)
{
	struct here *here = this_cpu();
	bool fragment = false;
	__u64 key = 0;
	if (!here || !judge(skb, here, &key, &fragment))
		return 0;
	add(COUNT_SENT, 1);
	if (fragment)
		add(COUNT_FRAGMENTS, 1);
	struct stamp *stamp = seen_at(key, STAGE_QUEUED, STAGE_QUEUED);
	if (!stamp)
		return 0;
	__u64 now = bpf_ktime_get_ns();
	took(QUEUE_TO_DRIVER, stamp->at, now);
	forget(key);
	if (config.completion) {
		begin((__u64)skb, STAGE_DRIVER);
	} else {
		here->sending = (__u64)skb;
		here->sending_since = now;
	}
	return 0;
}

/* The driver has returned and may have freed the packet, so only its address is compared. A virtual
 * device has handed it to the other side by now. */
SEC("tp_btf/net_dev_xmit")
int BPF_PROG(path_handed, struct sk_buff *skb, int rc)
{
	struct here *here = this_cpu();
	if (!here || here->sending != (__u64)skb)
		return 0;
	here->sending = 0;
	if (rc == 0)
		took(DRIVER_TO_WIRE, here->sending_since, bpf_ktime_get_ns());
	return 0;
}

SEC("tp_btf/tcp_retransmit_skb")
int BPF_PROG(path_again, struct sock *sk)
{
	struct packet packet = {};
	if (wanted_socket(sk, &packet))
		add(COUNT_RETRANSMITTED, 1);
	return 0;
}

/* ---- up: the device layer, the transport, the socket, the application ---- */

static __always_inline bool arrived(struct sk_buff *skb)
{
	struct packet packet;
	if (!on_link(skb) || !parse(skb, skb->data, &packet) || !wanted(&packet))
		return false;
	add(COUNT_RECEIVED, 1);
	if (BPF_CORE_READ_BITFIELD_PROBED(skb, ip_summed) != CHECKSUM_NONE)
		add(COUNT_CHECKSUM_DONE, 1);
	if (packet.fragment)
		add(COUNT_FRAGMENTS, 1);
	weigh(&packet);
	__u64 key = key_of(skb, &packet, true);
	if (key)
		begin(key, STAGE_ARRIVED);
	return true;
}

/* The four entries to the device layer; a packet passes one of them. */
SEC("tp_btf/netif_rx")
int BPF_PROG(path_in_backlog, struct sk_buff *skb)
{
	arrived(skb);
	return 0;
}

SEC("tp_btf/netif_receive_skb_entry")
int BPF_PROG(path_in, struct sk_buff *skb)
{
	arrived(skb);
	return 0;
}

SEC("tp_btf/netif_receive_skb_list_entry")
int BPF_PROG(path_in_list, struct sk_buff *skb)
{
	arrived(skb);
	return 0;
}

SEC("tp_btf/napi_gro_receive_entry")
int BPF_PROG(path_in_gro, struct sk_buff *skb)
{
	bool ours = arrived(skb);
	struct here *here = this_cpu();
	if (here)
		here->in_gro = ours;
	return 0;
}

SEC("tp_btf/napi_gro_receive_exit")
int BPF_PROG(path_gro_done, int result)
{
	struct here *here = this_cpu();
	if (!here || !here->in_gro)
		return 0;
	here->in_gro = 0;
	if (result == GRO_MERGED || result == GRO_MERGED_FREE)
		add(COUNT_MERGED, 1);
	return 0;
}

/* The packet that this processor carries up is the one that reaches a socket next: UDP has no
 * tracepoint there. */
SEC("tp_btf/netif_receive_skb")
int BPF_PROG(path_up, struct sk_buff *skb)
{
	struct here *here = this_cpu();
	if (here)
		here->arriving = on_link(skb) ? (__u64)skb : 0;
	return 0;
}

/* Returns true if the segment meets the conditions of TCP's fast path, header prediction (tcp_rcv_established,
 * net/ipv4/tcp_input.c): header length, flags and window are as predicted, the data is the next, and no byte is acknowledged
 * that was not sent. */
static __always_inline bool is_predicted(struct tcp_sock *tp, const struct transport *header)
{
	__u32 word = (__u32)header->offset << 24 | header->flags << 16 | bpf_ntohs(header->window);
	__u32 acknowledged = bpf_ntohl(header->acknowledgement);
	return (word & TCP_HP_BITS) == bpf_ntohl(tp->pred_flags) && bpf_ntohl(header->sequence) == tp->rcv_nxt &&
	       (__s32)(acknowledged - tp->snd_nxt) <= 0;
}

/* Runs for each segment of an established connection, with skb->data at TCP's header. */
SEC("tp_btf/tcp_probe")
int BPF_PROG(path_transport, struct sock *sk, struct sk_buff *skb)
{
	struct packet packet = {};
	struct transport header;
	struct here *here = this_cpu();
	if (!here || skb->skb_iif != config.ifindex || !wanted_socket(sk, &packet))
		return 0;
	struct tcp_sock *tp = bpf_skc_to_tcp_sock(sk);
	if (!tp || bpf_probe_read_kernel(&header, sizeof(header), skb->data))
		return 0;
	__u32 offset = (header.offset >> 4) * 4, len = skb->len;
	packet.sequence = bpf_ntohl(header.sequence);
	packet.payload = len > offset ? len - offset : 0;
	/* The softirq found the socket locked, and left the segment to the process that holds it. */
	if (sk->sk_lock.owned)
		add(COUNT_BACKLOG, 1);
	if (packet.payload && (__s32)(packet.sequence - tp->rcv_nxt) > 0)
		add(COUNT_OUT_OF_ORDER, 1);
	add(COUNT_TCP_SEGMENTS, 1);
	if (is_predicted(tp, &header))
		add(COUNT_PREDICTED, 1);
	here->delivering = 0;
	__u64 key = key_of(skb, &packet, false);
	struct stamp *stamp = seen_at(key, STAGE_ARRIVED, STAGE_ARRIVED);
	if (!stamp)
		return 0;
	stamp->at = bpf_ktime_get_ns();
	stamp->stage = STAGE_TRANSPORT;
	took(DEVICE_TO_TRANSPORT, stamp->arrived, stamp->at);
	here->delivering = key;
	here->delivering_to = (__u64)sk;
	return 0;
}

/* Returns the key of the followed packet that this processor has just put into the socket's queue. */
static __always_inline __u64 delivered(struct sock *sk, struct here *here)
{
	__u64 key = 0;
	if (sk->sk_protocol == IPPROTO_UDP) {
		key = here->arriving;
		here->arriving = 0;
	} else if (here->delivering_to == (__u64)sk) {
		key = here->delivering;
		here->delivering = 0;
	}
	return key;
}

/* Returns the datagram that has waited longest, or 0 if none waits. The reader moves all datagrams of the receive
 * queue to its own queue, and reads from that. */
static __always_inline __u64 oldest(struct sock *sk)
{
	struct udp_sock *up = (struct udp_sock *)sk;
	if (BPF_CORE_READ(up, reader_queue.qlen))
		return (__u64)BPF_CORE_READ(up, reader_queue.next);
	return BPF_CORE_READ(sk, sk_receive_queue.qlen) ? (__u64)BPF_CORE_READ(sk, sk_receive_queue.next) : 0;
}

static __always_inline void comes_next(struct sock *sk, __u64 datagram)
{
	__u64 socket = (__u64)sk;
	if (datagram)
		bpf_map_update_elem(&path_next, &socket, &datagram, BPF_ANY);
	else
		bpf_map_delete_elem(&path_next, &socket);
}

static __always_inline __u64 next_of(struct sock *sk)
{
	__u64 socket = (__u64)sk;
	__u64 *next = bpf_map_lookup_elem(&path_next, &socket);
	return next ? *next : 0;
}

static __always_inline int readable(struct sock *sk)
{
	struct here *here = this_cpu();
	if (!here || !in_namespace(sk->__sk_common.skc_net.net))
		return 0;
	if (sk->sk_protocol == IPPROTO_UDP && !next_of(sk))
		comes_next(sk, oldest(sk));
	struct stamp *stamp = seen_at(delivered(sk, here), STAGE_ARRIVED, STAGE_TRANSPORT);
	if (!stamp)
		return 0;
	stamp->at = bpf_ktime_get_ns();
	stamp->stage = STAGE_SOCKET;
	took(DEVICE_TO_SOCKET, stamp->arrived, stamp->at);
	return 0;
}

SEC("tp_btf/sk_data_ready")
int BPF_PROG(path_socket, struct sock *sk)
{
	return readable(sk);
}

/* For kernels without that tracepoint. */
SEC("fentry/sock_def_readable")
int BPF_PROG(path_socket_call, struct sock *sk)
{
	return readable(sk);
}

/* The application has read up to copied_seq, at most a merged packet (some strides) at a time. */
SEC("tp_btf/tcp_rcv_space_adjust")
int BPF_PROG(path_read, struct sock *sk)
{
	struct packet packet = {};
	if (!wanted_socket(sk, &packet))
		return 0;
	struct tcp_sock *tp = bpf_skc_to_tcp_sock(sk);
	if (!tp)
		return 0;
	__u32 byte = tp->copied_seq - 1;
	byte -= byte % config.stride;
	for (int i = 0; i < 8; i++) {
		__u64 key = segment_key(packet.source_port, packet.destination_port, byte);
		struct stamp *stamp = seen_at(key, STAGE_TRANSPORT, STAGE_SOCKET);
		if (!stamp)
			return 0;
		took(SOCKET_TO_APPLICATION, stamp->at, bpf_ktime_get_ns());
		forget(key);
		byte -= config.stride;
	}
	return 0;
}

/* Ends the trace of a followed packet that was last seen at one of two stages. */
static __always_inline int ended(__u64 key, enum stage one, enum stage other, enum hop hop)
{
	struct stamp *stamp = seen_at(key, one, other);
	if (!stamp)
		return 0;
	took(hop, stamp->at, bpf_ktime_get_ns());
	forget(key);
	return 0;
}

/* A receiving call has returned. It has read the datagram that was next in the queue if that no longer waits. The
 * release of the datagram would not show this, because the kernel leaves it to the processor on which the datagram
 * arrived (6.18). A datagram that arrived while others waited is not announced to the reader, so its wait began when
 * it arrived. */
SEC("tp_btf/sock_recv_length")
int BPF_PROG(path_taken, struct sock *sk, int rc)
{
	if (sk->sk_protocol != IPPROTO_UDP || !in_namespace(sk->__sk_common.skc_net.net))
		return 0;
	__u64 taken = next_of(sk), next = oldest(sk);
	if (taken == next)
		return 0;
	comes_next(sk, next);
	return ended(taken, STAGE_ARRIVED, STAGE_SOCKET, SOCKET_TO_APPLICATION);
}

/* ---- the end ---- */

/* Runs when a packet is freed, which a device does once it has sent the packet. */
SEC("tp_btf/consume_skb")
int BPF_PROG(path_freed, struct sk_buff *skb)
{
	return ended((__u64)skb, STAGE_DRIVER, STAGE_DRIVER, DRIVER_TO_WIRE);
}

/* For kernels without sock_recv_length: there a datagram is freed when it has been read. */
SEC("tp_btf/consume_skb")
int BPF_PROG(path_taken_old, struct sk_buff *skb)
{
	return ended((__u64)skb, STAGE_SOCKET, STAGE_SOCKET, SOCKET_TO_APPLICATION);
}

/* TCP removes the device from a packet before it checks it closely, and a packet that TCP sends has
 * none yet; the socket, if there is one, gives the namespace. */
static __always_inline bool is_ours(struct sk_buff *skb, struct sock *receiver)
{
	struct sock *sk = receiver ? receiver : skb->sk;
	if (skb->dev)
		return on_link(skb);
	return sk && in_namespace(sk->__sk_common.skc_net.net);
}

static __always_inline int dropped(struct sk_buff *skb, __u32 reason, struct sock *receiver)
{
	struct packet packet;
	__u64 one = 1;
	forget((__u64)skb);
	if (!is_ours(skb, receiver) || !parse(skb, network_header(skb), &packet) || !wanted(&packet))
		return 0;
	__u64 *drops = bpf_map_lookup_elem(&path_drops, &reason);
	if (drops)
		__sync_fetch_and_add(drops, 1);
	else if (bpf_map_update_elem(&path_drops, &reason, &one, BPF_NOEXIST))
		add(COUNT_LOST, 1);
	return 0;
}

SEC("tp_btf/kfree_skb")
int BPF_PROG(path_dropped, struct sk_buff *skb, void *location, __u32 reason, struct sock *receiver)
{
	return dropped(skb, reason, receiver);
}

/* For kernels that do not name the receiving socket. */
SEC("tp_btf/kfree_skb")
int BPF_PROG(path_dropped_old, struct sk_buff *skb, void *location, __u32 reason)
{
	return dropped(skb, reason, 0);
}
