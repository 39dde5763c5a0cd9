"""What is asked aloud in a mock interview: questions with answers, and what an interviewer asks next."""

from __future__ import annotations

from typing import NamedTuple


class Question(NamedTuple):
    """A question, its answer, the next question and its answer, and the number of the notebook to read again."""

    topic: str
    question: str
    answer: str
    then: str
    reply: str
    notebook: int


QUESTIONS = [
    Question(
        "messages", "What does a model return?",
        "Text, tool calls, or both. A call has an id, the name of a tool, and arguments as JSON. It is a request and "
        "nothing more.",
        "And if it returns neither text nor a call?",
        "Then it asks for nothing, so it is the final answer, an empty one. It is not asked again without a limit.", 1),
    Question(
        "messages", "Who runs the tool?",
        "Our code. The model can only ask. Between its request and our action lies every check there is.",
        "Is it enough to forbid a call in the prompt?",
        "No. A prompt is a wish, and the model may ignore it. What holds is code: the registry, and the checks before "
        "a run.", 1),
    Question(
        "messages", "A reply has text and a call. Is it the answer?",
        "No. Only a reply without calls is. The text is kept in the list, the call is run, and the model is asked "
        "again.",
        "The text says: final answer. And now?",
        "Still no. What a text says is never a signal; otherwise any text could end the run.", 1),
    Question(
        "messages", "Which message shapes are there?",
        "Four: system, user, assistant with its calls, and tool with the id of the call that it answers.",
        "Why plain dicts?",
        "They are written as JSON as they are: to save, to compare, to send. One shape for the run and for its "
        "record.", 1),
    Question(
        "messages", "Why does a call need an id?",
        "One reply may hold several calls, even of the same tool with the same arguments. The id ties each result to "
        "its call.",
        "What if the model gives two calls the same id, or none?",
        "Replace it by a fresh one before the reply enters the list. Then every result still has one owner.", 1),
    Question(
        "messages", "The model remembers nothing. How does it know what happened?",
        "It is sent the whole list with every call. What is not in the list has not happened, to the model.",
        "What does that cost?",
        "Each step sends everything before it again, so the input of a run grows with the square of its steps.", 1),
    Question(
        "messages", "Why is the list appended to and never edited?",
        "Because it is the record. An edited list cannot be compared, resumed or trusted, and what the model saw is "
        "lost.",
        "Who would edit it?",
        "An adapter that takes the system message out, a tool that changes its arguments in place. So give copies "
        "away.", 4),
    Question(
        "validator", "What does a good error message to the model say?",
        "What is wrong, where, and what was expected: the argument's name and the schema. The model reads it and "
        "repairs the call in the next step.",
        "What is wrong with the words: invalid input?",
        "They cost a step and teach nothing. The model guesses, often the same thing again.", 2),
    Question(
        "validator", "Why not let Python's TypeError do the validating?",
        "For a missing or unexpected argument it looks like a bug of the tool itself. A wrong type often raises "
        "nothing at all: \"3\" * 2 is \"33\". And where it does raise, half of the tool's work may be done.",
        "Is a TypeError then never the tool's own?",
        "It can be. That is the point: after validation, a TypeError is the tool's own bug, and says so.", 2),
    Question(
        "validator", "Why is a bool checked before a number?",
        "In Python bool is a subclass of int, so isinstance(True, int) holds. In JSON they are different types.",
        "And is 3.0 an integer?",
        "JSON Schema says yes. A strict validator may say no, because the function would get a float; say which you "
        "chose.", 2),
    Question(
        "validator", "The model sends an argument that the schema does not have. What do you do?",
        "Refuse the call and list what is expected. Dropping it would hide a misspelt option.",
        "And a number sent as text, \"30\"?",
        "Refuse too, with the type that is wanted. A silent conversion guesses what was meant.", 2),
    Question(
        "validator", "What does validation cost?",
        "Time that grows with the number of arguments. Finding the tool is one look-up. Beside a model call it is "
        "nothing.",
        "Then why not validate twice?",
        "Because two checks drift apart. One place decides: before the function, after the name.", 2),
    Question(
        "registry", "The model asks for a tool that you do not have. What happens?",
        "It gets an observation: unknown tool, and the names there are. The run goes on.",
        "Why not stop the run?",
        "The model can repair this by itself. Stopping throws away everything that was paid for.", 3),
    Question(
        "registry", "A tool raises. What does the model see?",
        "A text that starts with ERROR and names the tool, the type of the exception and its message.",
        "Which exceptions of a tool would you let through?",
        "A person's Ctrl-C, because it is meant for the run and not for the call. All others become text, even a "
        "sys.exit(): a tool must not be able to end the run.", 3),
    Question(
        "registry", "Why is the registry an allow-list?",
        "A name that is not registered cannot run, whatever the model writes. Nothing is looked up anywhere else.",
        "What is wrong with getattr(tools, name)?",
        "It finds more than you meant: __init__, helpers, imported modules. The model would choose what is public.", 3),
    Question(
        "registry", "In which order do you check a call?",
        "Name, arguments, then what costs something: a person's approval, then the run.",
        "Why approval after validation?",
        "Nobody should be asked about a call that cannot run.", 3),
    Question(
        "registry", "What makes a good tool description?",
        "One clear job, and when to use it. The model sees the name, the description and the parameters, and nothing "
        "else, so all three have to speak for themselves.",
        "And a good result?",
        "Short and relevant. Every token of it is sent again with each later step.", 3),
    Question(
        "registry", "A tool returns something that is not JSON. What do you tell the model?",
        "That the tool did run, and that its result could not be written. It must not look like a failure.",
        "Why does that matter?",
        "A model repeats what failed. If the tool was a payment, it is paid twice.", 3),
    Question(
        "registry", "When do you find out that a schema cannot be checked?",
        "At registration, with an exception for the programmer. In the middle of a run it would be the model's "
        "problem.",
        "Why not ignore a keyword that you do not know?",
        "The model reads the schema as a promise. A rule that is shown but not checked is worse than none.", 3),
    Question(
        "loop", "Say the loop in one sentence.",
        "Ask the model, append its reply, run each call it asks for, append one observation for each, and ask again "
        "until it asks for none or a limit stops the run.",
        "Where does it touch the world?",
        "In two places: where it asks the model, and where it runs a call. Everything else can wrap one of the "
        "two.", 4),
    Question(
        "loop", "A reply has three calls and the second fails. What is in the list?",
        "One assistant message with three calls, then three tool messages in the same order; the second starts with "
        "ERROR.",
        "Why not stop at the failure?",
        "A call without a result makes a list that providers refuse. And the third call may be fine.", 4),
    Question(
        "loop", "What happens if one observation is missing?",
        "A provider refuses the next request. Where nobody refuses, the model guesses what the result was.",
        "How would you notice in a test?",
        "Compare the ids of the calls with the ids of the tool messages: the same, in the same order.", 4),
    Question(
        "loop", "Does done mean that the task succeeded?",
        "No. It means that the model stopped. Whether the task succeeded is for a check of the task to say.",
        "What would such a check look at?",
        "At the world, not at the text: is the file changed, does the test pass, is the number right.", 14),
    Question(
        "loop", "Why is a framework not needed for this?",
        "The loop is some twenty-five lines, and the interesting part is what stands between them. You should know it "
        "before you hide it.",
        "When would you use one?",
        "For what is tedious and not special to you: adapters to providers, stored sessions, tracing pages.", 4),
    Question(
        "exits", "Name the exits before you write the loop.",
        "Done: a reply without calls. Step limit: enough model calls. Token budget: the next prompt would not fit.",
        "Which would you add in production?",
        "Wall-clock time, money, the same call repeated, a person who has to approve, and Ctrl-C with the run "
        "kept.", 5),
    Question(
        "exits", "Do you check the budget before or after the call?",
        "Before, on an estimate of the prompt: specs and the whole list. After the call the money is spent.",
        "Can the run still pass its budget?",
        "By the last reply, which comes after the check. So keep room: lower the budget by the largest reply you "
        "allow.", 5),
    Question(
        "exits", "How do you count tokens without a tokenizer?",
        "About four characters of JSON are one token in English. Good enough for a limit; the provider's own count "
        "replaces it when the reply comes.",
        "Where is that rule wrong?",
        "In other scripts: Chinese takes about a token for each character. And escapes such as \\u65e5 count "
        "sixfold.", 5),
    Question(
        "exits", "What should a stopped run return?",
        "Its status, no answer, and all its messages: what was done, and why it ended. Such a list can be continued.",
        "Why no answer?",
        "The last text is a remark beside a call. Shown as an answer, it is a mistake that nobody notices.", 5),
    Question(
        "exits", "max_steps is reached and the last reply asked for a call. Does it run?",
        "Both can be argued. Here it runs once, so that each paid reply is carried out and the list is complete.",
        "What must you do if you choose not to run it?",
        "Answer it all the same, with an error text. A call without a result cannot be sent again.", 5),
    Question(
        "exits", "1,000 tokens at the start, 500 more a step, 8 steps. How many input tokens?",
        "22,000: 8 × 1,000 and 500 × (0 + 1 + … + 7).",
        "And with 16 steps?",
        "76,000. Twice the steps, some three and a half times the tokens; for long runs, four times.", 5),
    Question(
        "exits", "What is the complexity of a run of S steps with r tokens each?",
        "Input tokens O(S² r), model calls at most max_steps, validation O(arguments) a call, look-up O(1).",
        "How do you make the square smaller?",
        "Shorter results, fewer steps, several calls in one reply, a second agent with a list of its own. Or the "
        "provider's cache, which lowers the price and not the length.", 5),
    Question(
        "exits", "How do you choose max_steps?",
        "From good runs: if they take six steps, allow twelve. Enough to recover, too few to wander.",
        "What if a run needs more?",
        "Return the messages, and let the caller go on with a higher limit.", 5),
    Question(
        "testing", "How do you test an agent without a model?",
        "The model is a function. Put one in its place that replays fixed replies and keeps copies of what it was "
        "shown.",
        "What do you assert on?",
        "On the result, on what the model was shown at each call, and on which tools really ran.", 1),
    Question(
        "testing", "Which tests would you write first?",
        "The happy path, then each exit and each error path on its own: unknown tool, bad arguments, a tool that "
        "raises, two calls, no end, both budgets.",
        "What does the happy path check that the others do not?",
        "That the model is shown 2, 4, then 6 messages, and that from the second call on the last one is a tool "
        "result.", 4),
    Question(
        "testing", "Your script runs out of replies. What should happen?",
        "It fails loudly. A script that repeats its last reply would hide a loop that asks too often.",
        "And if replies are left over?",
        "That is a finding too: the loop stopped early. Let the test say so.", 1),
    Question(
        "testing", "How do you test that nothing ran?",
        "Let the tool write into a list when it is called, and assert that the list is empty. The error text alone "
        "proves nothing.",
        "Why not a mock?",
        "A real function with a log goes the whole way: name, validation, call. If the registry itself is replaced "
        "by a mock, the checks that should have stopped the call are never run.", 3),
    Question(
        "testing", "How would you know that the agent got better?",
        "By the same tasks before and after, each run several times, because one run is partly luck. Compare success "
        "rates, and then steps and cost. A difference smaller than that between two runs of the same agent is noise.",
        "Ten steps, each right with 95%. How many runs are right?",
        "0.95 to the tenth, 60%. With twenty steps 36%. So shorten the path, or check on the way.", 16),
    Question(
        "production", "A tool hangs. What do you do?",
        "A timeout on every tool: the wait ends, and the model reads that there is no result yet.",
        "Is the tool stopped?",
        "No. Python cannot kill a thread; the call may still be running. So the text must say so, and a write is not "
        "repeated.", 6),
    Question(
        "production", "When do you retry?",
        "What may pass on a second try: timeouts, rate limits; with growing waits and some jitter, then give up. And "
        "only what is safe to repeat.",
        "Your payment call timed out. Retry?",
        "No. The request may have landed. Ask for its state first, or send a key that makes repeats harmless.", 6),
    Question(
        "production", "The model makes the same call again and again. How do you notice?",
        "Compare tool, arguments and result with the last ones. The third in a row is not run; stop, or tell the "
        "model to change its approach.",
        "Why compare the result too?",
        "A poll is the same call with a new answer. That is no loop.", 7),
    Question(
        "production", "A tool may issue refunds. How do you keep a person in charge?",
        "The call is not run. The messages and the open call are saved, and the run ends: waiting for approval. Yes "
        "runs it, no becomes an observation.",
        "The yes comes hours later, in another process. What must be stored?",
        "The message list, the steps and tokens so far, and which call waits. The list is most of it.", 8),
    Question(
        "production", "How do you resume a run without doing anything twice?",
        "By the list: a call with an observation is done. A call without one may have run, so it is answered with "
        "interrupted, not run again.",
        "And the limits?",
        "Steps and tokens go on counting. One run, one budget; a caller may raise it on purpose.", 8),
    Question(
        "production", "A web page tells your agent to send it all passwords. What protects you?",
        "Not the prompt. What the tools can do at all: least rights, an allow-list, approval for what is risky, and no "
        "secrets in the list.",
        "Is a tool result trusted text?",
        "No. To the model it reads like any other message. Treat what follows from it as a request by a stranger.", 12),
    Question(
        "production", "Two calls in one reply. Do you run them at the same time?",
        "Only if each is safe beside the other, which reads are. The results go into the list in the order of the "
        "calls.",
        "What if one of them fails?",
        "It gets its own error text; the other keeps its result.", 13),
    Question(
        "production", "The message list does not fit into the context window any more. What do you drop?",
        "The oldest steps, each whole: a reply with all its calls, and their results. The system message, the task and "
        "the latest steps stay. A summary may stand for what was dropped.",
        "Why not drop the longest message?",
        "If it is a result, its call has none any more, and providers refuse the list. Shorten the text of that "
        "result, or drop the reply and all its results together.", 15),
    Question(
        "production", "The answer has to be JSON of a given shape. How do you get it?",
        "Ask for it with the provider's structured output, or with a tool named answer whose parameters are the shape. "
        "Then validate it, as you validate arguments.",
        "It does not fit the shape. And now?",
        "Show the model what is wrong, as with a bad call, and ask again; after a fixed number of tries the run ends "
        "with a status of its own. The right shape says nothing of the right content.", 2),
    Question(
        "production", "How does streaming change the loop?",
        "It does not. The adapter shows text as it arrives and gathers the pieces of each call; the loop gets one "
        "whole reply. No call runs before its arguments are complete.",
        "The stream breaks off in the middle. What do you keep?",
        "Nothing of that reply in the list, for its calls may be cut off. What was shown to a person is marked as "
        "broken off, and the model is asked again with the same list.", 10),
    Question(
        "production", "What should an agent remember from one run to the next?",
        "Little, and on purpose: facts that were checked, written by a tool into a store, with their source and date. "
        "A later run reads them by a tool, or gets them in its first message.",
        "Why not keep all old messages?",
        "They are paid for at every step, old mistakes are read as facts, and one user's data turn up in the run of "
        "another.", 15),
    Question(
        "production", "When would you not build an agent?",
        "When the steps can be written down, a workflow is cheaper, faster and easier to test. Nor when mistakes "
        "cannot be reviewed, or the result cannot be judged.",
        "Give an example.",
        "Classify a ticket, fetch the policy, draft a reply: three calls in a fixed order, no loop.", 11),
    Question(
        "production", "What do you store of a run?",
        "The message list. It holds what was asked, done and observed, in order; beside it tokens and seconds of "
        "each step.",
        "What must not be in it?",
        "Secrets: redact by the name of the field, on a copy, and say that this is not complete.", 9),
    Question(
        "production", "How do you change from one provider to another?",
        "An adapter: a function of messages and specs that returns a reply. The loop does not change.",
        "What does the adapter take care of?",
        "The shape of the messages, arguments that come as JSON text, stop reasons such as a reply that was cut off, "
        "and token counts.", 10),
    Question(
        "production", "A reply was cut off at the provider's limit, inside a call. Do you run the call?",
        "Never. Its arguments are not whole. The run ends, and says that the reply was truncated.",
        "Why not ask again?",
        "It would be cut off again. Raise the limit, or let the caller decide.", 10),
]
