/**
 * Runs the payment service until it is interrupted: `node examples/payment-service/main.ts`.
 *
 * @module
 */
import { startPaymentService } from './server.ts';

const service = await startPaymentService();
console.log(`listening on ${service.origin}`);
console.log(`curl -H 'authorization: ${service.token}.main' ${service.origin}/payments`);
process.once('SIGINT', () => void service[Symbol.asyncDispose]().then(() => process.exit()));
