"""What the demo asks: one interview question in two languages, and eleven answers to it.

The first answer is sent many times over, as impatient clients and retrying gateways do; the
others, from blank to expert, once each.
"""

from __future__ import annotations

import json
from dataclasses import dataclass

SESSION = "demo-backend"

QUESTION_ZH = (
    "用 Redis 缓存 MySQL 的数据,如何保证缓存和数据库的一致性?"
    "并发更新时还会读到旧值吗,怎样用过期时间和重试来补救?"
)
QUESTION_EN = (
    "With Redis as a cache for MySQL, how do you avoid stale reads? What can go wrong with "
    "concurrent updates, and what if the delete fails?"
)
RESUME_ZH = "四年 Java 后端经验,负责过订单与库存服务,日均请求约八千万。"
RESUME_EN = "Five years of backend work on a booking platform, 2,000 requests per second at peak."


@dataclass(frozen=True, slots=True)
class Sample:
    """One candidate's answer.

    :param name: of the answer, also that of its rule in the model server's script.
    """

    name: str
    question: str
    answer: str
    resume: str

    @property
    def body(self) -> bytes:
        """The body of the request that has it evaluated."""
        fields = {
            "question_number": 3,
            "question": self.question,
            "answer": self.answer,
            "resume_context": self.resume,
        }
        return json.dumps(fields, ensure_ascii=False).encode()

    @property
    def mark(self) -> str:
        """The beginning of the answer: a prompt that holds it asks for this sample."""
        return self.answer[:24]


_CHINESE = {
    "zh-1": (
        "我会用旁路缓存:读的时候先查 Redis,没有再查 MySQL,然后写回缓存并设置过期时间;写的时候先更"
        "新数据库,再删除缓存,而不是更新缓存,因为两个并发更新写缓存的先后顺序可能和数据库不一样,会"
        "留下旧值。先更新后删除仍有小窗口:读请求在更新前查到旧值,在删除之后才写回。补救办法首先是"
        "过期时间兜底,其次是订阅 binlog 再删一次,删除失败就进消息队列重试,保证最终一致。如果业务"
        "要求强一致,就直接读主库。"
    ),
    "zh-2": (
        "先删缓存再更新数据库,然后延迟几百毫秒再删一次,也就是延迟双删。因为第一次删除之后、数据库"
        "提交之前,别的请求可能把旧数据又写回缓存。缺点是延迟时间不好定,主从同步慢的时候还是会读到"
        "旧数据。"
    ),
    "zh-3": (
        "用 Canal 订阅 MySQL 的 binlog,投到 Kafka,由消费者统一删除或刷新 Redis。这样业务代码不用"
        "关心缓存,删除失败可以重试。同一个主键的消息进同一个分区,所以顺序不会乱;另外在缓存值里带"
        "上版本号,用 Lua 脚本比较,旧版本不能覆盖新版本。代价是多一条链路,延迟大约几十毫秒,需要监"
        "控消费积压。"
    ),
    "zh-4": (
        "更新的时候加分布式锁,保证同一条数据同时只有一个线程在改数据库和缓存,就一致了。锁用 "
        "SETNX 加过期时间实现。"
    ),
    "zh-5": "每次更新完数据库就把新值 set 到 Redis 里,两边就一样了,一般不会出什么问题。",
    "zh-6": "这个我没有实际做过,应该给缓存设一个过期时间,过期之后就会自动变成新的数据。",
}
_ENGLISH = {
    "en-1": (
        "Cache-aside: read through Redis, fall back to MySQL, fill the cache with a TTL. On a "
        "write, commit to the database first and then delete the key instead of setting it, "
        "because two concurrent updates could set the cache in the wrong order. A reader that "
        "fetched the old row before the commit can still fill the cache after the delete, so I "
        "version the rows and let a Lua script refuse an older version. If the delete fails, an "
        "outbox row retries it. What remains is a short window of stale reads; for money I read "
        "from the primary."
    ),
    "en-2": (
        "I would invalidate from the binlog (Debezium into Kafka, keyed by primary key), so that "
        "every writer is covered, also batch jobs and manual fixes. The consumer deletes keys in "
        "Redis and is idempotent. First risk: consumer lag means stale reads, therefore I alert "
        "on the lag. Second: a hot key that is deleted causes a stampede on MySQL, so refills go "
        "through a single-flight per key."
    ),
    "en-3": (
        "Write-through: the service updates MySQL and Redis in the same method. If the Redis "
        "write fails I log it, and the TTL of ten minutes repairs it. Most of the time that is "
        "consistent enough."
    ),
    "en-4": (
        "Use transactions. Redis has MULTI and MySQL has transactions, so both commit or none."
    ),
    "en-5": "I am not sure. Maybe restart Redis at night so that the old data is gone?",
}

SAMPLES = (
    *(Sample(name, QUESTION_ZH, answer, RESUME_ZH) for name, answer in _CHINESE.items()),
    *(Sample(name, QUESTION_EN, answer, RESUME_EN) for name, answer in _ENGLISH.items()),
)
#: the answer that many ask about at the same time
IDENTICAL = SAMPLES[0]
#: those that are asked about once
DIFFERENT = SAMPLES[1:]
