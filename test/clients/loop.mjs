// What the loops of all SDKs have in common: the model, what the agent is told, and its only tool.
export const models = { chat: 'gpt-4o-mini', responses: 'gpt-5-mini' };
export const instructions = 'You run commands until you know the answer.';
export const maxTurns = 100;

export const tool = {
  name: 'bash',
  description: 'Run a command and return what it prints.',
  parameters: {
    type: 'object',
    properties: { command: { type: 'string' } },
    required: ['command'],
    additionalProperties: false,
  },
  // seq is the only command the scripted model asks for; nothing is executed.
  run({ command }) {
    const [, from, to] = command.match(/^seq (\d+) (\d+)$/).map(Number);
    const lines = [];
    for (let i = from; i <= to; i++) lines.push(i);
    return lines.join('\n') + '\n';
  },
};

// main runs a loop as the command line says, node FILE BASE_URL chat|responses whole|stream PROMPT, prints the final text,
// or what the error that ended the loop says, and exits with 1 then.
export async function main(loop) {
  const [baseURL, api, how, prompt] = process.argv.slice(2);
  try {
    console.log(await loop({ baseURL, api, stream: how === 'stream', prompt }));
  } catch (error) {
    console.log(error);
    process.exitCode = 1;
  }
}
