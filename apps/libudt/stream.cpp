// A stream by Debian's libudt, for the application `libudt`: what its ends move in a window after the warm-up.
//     libudt receive IP PORT PACKET BUFFER WARM-UP SECONDS
//     libudt send    IP PORT PACKET BUFFER WARM-UP SECONDS
// Prints the rate of the window.

#include <arpa/inet.h>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <udt/udt.h>
#include <vector>

using Clock = std::chrono::steady_clock;

int main(int count, char** words) {
    if (count != 8)
        return fprintf(stderr, "wants: receive|send IP PORT PACKET BUFFER WARM-UP SECONDS\n"), 2;
    bool sends = !strcmp(words[1], "send");
    sockaddr_in there = {};
    there.sin_family = AF_INET;
    there.sin_port = htons(atoi(words[3]));
    inet_pton(AF_INET, words[2], &there.sin_addr);
    int packet = atoi(words[4]), buffer = atoi(words[5]), packets = buffer / packet;
    UDTSOCKET socket = UDT::socket(AF_INET, SOCK_STREAM, 0);
    UDT::setsockopt(socket, 0, UDT_MSS, &packet, sizeof packet);
    UDT::setsockopt(socket, 0, UDT_FC, &packets, sizeof packets);
    for (UDTOpt option : {UDT_SNDBUF, UDT_RCVBUF, UDP_SNDBUF, UDP_RCVBUF})
        UDT::setsockopt(socket, 0, option, &buffer, sizeof buffer);
    if (sends) {
        if (UDT::connect(socket, (sockaddr*)&there, sizeof there) == UDT::ERROR)
            return fprintf(stderr, "connect: %s\n", UDT::getlasterror_desc()), 1;
    } else {
        if (UDT::bind(socket, (sockaddr*)&there, sizeof there) == UDT::ERROR || UDT::listen(socket, 1) == UDT::ERROR)
            return fprintf(stderr, "listen: %s\n", UDT::getlasterror_desc()), 1;
        socket = UDT::accept(socket, nullptr, nullptr);
    }
    std::vector<char> room(1 << 17, 7);
    auto move = [&] { return sends ? UDT::send(socket, room.data(), room.size(), 0) : UDT::recv(socket, room.data(), room.size(), 0); };
    auto until = [&](Clock::time_point end) {
        long long bytes = 0;
        while (Clock::now() < end) {
            int moved = move();
            if (moved == UDT::ERROR)
                return fprintf(stderr, "%s: %s\n", words[1], UDT::getlasterror_desc()), exit(1), 0LL;
            bytes += moved;
        }
        return bytes;
    };
    using std::chrono::duration;
    auto seconds = [](const char* word) { return std::chrono::duration_cast<Clock::duration>(duration<double>(atof(word))); };
    until(Clock::now() + seconds(words[6]));
    auto begun = Clock::now();
    long long bytes = until(begun + seconds(words[7]));
    printf("%.0f b/s\n", 8 * bytes / duration<double>(Clock::now() - begun).count());
    fflush(stdout);
    // The other end's window may be open a little longer.
    for (auto end = Clock::now() + seconds("0.5"); Clock::now() < end && move() != UDT::ERROR;) {}
    _Exit(0);
}
