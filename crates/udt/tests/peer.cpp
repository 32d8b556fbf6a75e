// The other end of tests/libudt.rs, with Debian's libudt:
//     peer listen stream|messages        prints its port, receives until the peer closes, prints what it received
//     peer connect PORT stream|messages BYTES    sends so many bytes, closes
// What is received is printed as "BYTES HASH", the hash being FNV-1a of 64 bits; messages are hashed one after the other.

#include <arpa/inet.h>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>
#include <udt/udt.h>

static int fail(const char* what) {
    fprintf(stderr, "%s: %s\n", what, UDT::getlasterror().getErrorMessage());
    return 1;
}

static sockaddr_in address(int port) {
    sockaddr_in address = {};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    return address;
}

static int listen(bool stream) {
    UDTSOCKET socket = UDT::socket(AF_INET, stream ? SOCK_STREAM : SOCK_DGRAM, 0);
    sockaddr_in here = address(0);
    int size = sizeof here;
    if (UDT::bind(socket, (sockaddr*)&here, size) == UDT::ERROR || UDT::listen(socket, 1) == UDT::ERROR)
        return fail("listen");
    UDT::getsockname(socket, (sockaddr*)&here, &size);
    printf("%d\n", ntohs(here.sin_port));
    fflush(stdout);
    UDTSOCKET peer = UDT::accept(socket, (sockaddr*)&here, &size);
    if (peer == UDT::INVALID_SOCK)
        return fail("accept");
    std::vector<char> room(1 << 20);
    uint64_t hash = 0xcbf29ce484222325, bytes = 0;
    for (;;) {
        int got = stream ? UDT::recv(peer, room.data(), room.size(), 0) : UDT::recvmsg(peer, room.data(), room.size());
        if (got <= 0)
            break;
        bytes += got;
        for (int at = 0; at < got; at++)
            hash = (hash ^ (unsigned char)room[at]) * 0x100000001b3;
    }
    printf("%llu %016llx\n", (unsigned long long)bytes, (unsigned long long)hash);
    return 0;
}

static int connect(int port, bool stream, size_t bytes) {
    UDTSOCKET socket = UDT::socket(AF_INET, stream ? SOCK_STREAM : SOCK_DGRAM, 0);
    sockaddr_in there = address(port);
    if (UDT::connect(socket, (sockaddr*)&there, sizeof there) == UDT::ERROR)
        return fail("connect");
    std::vector<char> data(bytes);
    for (size_t at = 0; at < bytes; at++)
        data[at] = char((at * 2654435761u) >> 13);
    size_t sent = 0;
    while (sent < bytes) {
        // Messages of several lengths, of one packet and of more.
        size_t piece = std::min(bytes - sent, stream ? bytes : size_t(1 + sent % 20000));
        int done = stream ? UDT::send(socket, &data[sent], piece, 0) : UDT::sendmsg(socket, &data[sent], piece, -1, true);
        if (done == UDT::ERROR)
            return fail("send");
        sent += done;
    }
    UDT::close(socket);
    return 0;
}

int main(int count, char** words) {
    UDT::startup();
    int code = 2;
    if (count == 3 && !strcmp(words[1], "listen"))
        code = listen(!strcmp(words[2], "stream"));
    else if (count == 5 && !strcmp(words[1], "connect"))
        code = connect(atoi(words[2]), !strcmp(words[3], "stream"), atol(words[4]));
    UDT::cleanup();
    return code;
}
