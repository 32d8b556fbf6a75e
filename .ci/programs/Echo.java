import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.nio.ByteBuffer;
import java.nio.channels.SelectionKey;
import java.nio.channels.Selector;
import java.nio.channels.SocketChannel;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Random;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;

/** Echoes, or sends random bytes on connections and compares what comes back: Echo server|client PORT [CONNECTIONS]. */
public class Echo {
    private static final int BYTES = 262144;

    private static void serve(int port) throws IOException {
        var listener = new ServerSocket(port, 500, InetAddress.getLoopbackAddress());
        while (true) {
            var socket = listener.accept();
            new Thread(() -> echo(socket)).start();
        }
    }

    private static void echo(Socket socket) {
        try (socket) {
            socket.getInputStream().transferTo(socket.getOutputStream());
            socket.shutdownOutput();
        } catch (IOException error) {
            System.out.println(error);
        }
    }

    /** Asks on a socket that blocks. */
    private static byte[] ask(int port, byte[] sent) throws Exception {
        try (var socket = new Socket("127.0.0.1", port)) {
            var sender = new Thread(() -> {
                try {
                    socket.getOutputStream().write(sent);
                    socket.shutdownOutput();
                } catch (IOException error) {
                    System.out.println(error);
                }
            });
            sender.start();
            byte[] came = socket.getInputStream().readAllBytes();
            sender.join();
            return came;
        }
    }

    /** Asks on a channel that connects without blocking, in a selector. */
    private static byte[] askByChannel(int port, byte[] sent) throws Exception {
        try (var channel = SocketChannel.open()) {
            channel.configureBlocking(false);
            try (var selector = Selector.open()) {
                channel.register(selector, SelectionKey.OP_CONNECT);
                channel.connect(new InetSocketAddress("127.0.0.1", port));
                while (!channel.finishConnect()) {
                    selector.select(1000);
                }
            }
            channel.configureBlocking(true);
            var sender = new Thread(() -> {
                try {
                    var left = ByteBuffer.wrap(sent);
                    while (left.hasRemaining()) {
                        channel.write(left);
                    }
                    channel.shutdownOutput();
                } catch (IOException error) {
                    System.out.println(error);
                }
            });
            sender.start();
            var came = ByteBuffer.allocate(2 * BYTES);
            while (channel.read(came) >= 0) {}
            sender.join();
            return Arrays.copyOf(came.array(), came.position());
        }
    }

    public static void main(String[] words) throws Exception {
        int port = Integer.parseInt(words[1]);
        if (words[0].equals("server")) {
            serve(port);
        }
        var threads = Executors.newFixedThreadPool(50);
        List<Future<Boolean>> asked = new ArrayList<>();
        for (int made = 0; made < Integer.parseInt(words[2]); made++) {
            boolean byChannel = made % 2 == 1;
            asked.add(threads.submit(() -> {
                byte[] sent = new byte[BYTES];
                new Random().nextBytes(sent);
                return Arrays.equals(sent, byChannel ? askByChannel(port, sent) : ask(port, sent));
            }));
        }
        boolean equal = true;
        for (var one : asked) {
            equal &= one.get();
        }
        System.exit(equal ? 0 : 1);
    }
}
