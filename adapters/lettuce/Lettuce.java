import com.google.gson.JsonObject;
import io.lettuce.core.RedisException;
import io.lettuce.core.protocol.CommandHandler;
import io.lettuce.core.resource.DefaultClientResources;
import io.lettuce.core.resource.NettyCustomizer;
import io.netty.channel.Channel;
import io.netty.channel.ChannelHandlerContext;
import io.netty.channel.ChannelInboundHandlerAdapter;
import java.time.Duration;
import java.util.List;
import org.springframework.data.redis.connection.RedisStandaloneConfiguration;
import org.springframework.data.redis.connection.lettuce.LettuceClientConfiguration;
import org.springframework.data.redis.connection.lettuce.LettuceConnectionFactory;

/** Spring Data's connection to Redis, by Lettuce, with few threads, for each client is a JVM. */
final class Lettuce {
    /**
     * Ends the commands that were sent on a connection that is lost, and have no answer: Lettuce would send them again on
     * the next connection. What is asked meanwhile waits for that; REJECT_COMMANDS, an option of Lettuce, would refuse it.
     */
    private static final NettyCustomizer SENT_ONCE = new NettyCustomizer() {
        @Override
        public void afterChannelInitialized(Channel channel) {
            channel.pipeline().addFirst(new ChannelInboundHandlerAdapter() {
                @Override
                public void channelInactive(ChannelHandlerContext lost) throws Exception {
                    List.copyOf(lost.pipeline().get(CommandHandler.class).getStack())
                        .forEach(sent -> sent.completeExceptionally(new RedisException("the connection was lost")));
                    super.channelInactive(lost);
                }
            });
        }
    };

    /** Connects now, and not within the first acquire. */
    static LettuceConnectionFactory connected(JsonObject node) {
        LettuceClientConfiguration client = LettuceClientConfiguration.builder()
            .clientResources(DefaultClientResources.builder().ioThreadPoolSize(2).computationThreadPoolSize(2)
                .nettyCustomizer(SENT_ONCE).build())
            .commandTimeout(Duration.ofSeconds(1)).shutdownTimeout(Duration.ZERO).build();
        LettuceConnectionFactory link = new LettuceConnectionFactory(
            new RedisStandaloneConfiguration(node.get("host").getAsString(), node.get("port").getAsInt()), client);
        link.afterPropertiesSet();
        link.start();
        link.getConnection().close(); // its connection to the server, which all share, stays
        return link;
    }
}
